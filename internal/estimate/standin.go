package estimate

import (
	"math"
	"sort"
	"strings"
)

// makers are words before the name of an accelerator that do not tell it from another.
var makers = map[string]bool{"nvidia": true, "tesla": true, "geforce": true, "quadro": true, "amd": true,
	"instinct": true, "google": true, "cloud": true, "aws": true, "gpu": true, "rtx": true}

// words is an accelerator's name in words that can be compared: "NVIDIA A100-SXM4-80GB"
// is a100, sxm, 80gb.
func words(name string) (out []string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r == ' ' || r == '-' || r == '_' || r == '/' || r == '(' || r == ')'
	}) {
		if strings.HasPrefix(w, "sxm") {
			w = "sxm"
		}
		if w = strings.TrimPrefix(w, "rtx"); w != "" && !makers[w] {
			out = append(out, w)
		}
	}
	return out
}

// meant is the accelerator that a spelling nobody foresaw stands for: the first word
// must be its own, of those it is the one with most words in common, then with the
// nearest memory, then the one for the maker's own boards.
func (c Chips) meant(name string, mem float64) (Chip, bool) {
	w := words(name)
	if len(w) == 0 {
		return Chip{}, false
	}
	var best Chip
	found, most := false, math.Inf(-1)
	for _, k := range c.sorted() {
		own := words(k.Name)
		if len(own) == 0 || own[0] != w[0] {
			continue
		}
		score := 0.0
		for _, a := range own[1:] {
			for _, b := range w[1:] {
				if a == b {
					score += 10
				}
			}
		}
		if mem > 0 && k.Mem > 0 {
			score -= 5 * math.Abs(math.Log(mem/k.Mem))
		}
		if strings.Contains(strings.ToLower(k.Name), "sxm") {
			score++
		}
		if score > most {
			best, found, most = k, true, score
		}
	}
	return best, found
}

// standIn is the accelerator in the middle, by rate, of those with about as much
// memory: what is taken where nothing is known of one.
func (c Chips) standIn(mem float64) (Chip, bool) {
	var near []Chip
	for _, k := range c.sorted() {
		if k.Half > 0 && k.Band > 0 && (!(mem > 0) || math.Abs(math.Log(k.Mem/mem)) < 0.35) {
			near = append(near, k)
		}
	}
	if len(near) == 0 && mem > 0 {
		return c.standIn(0)
	}
	if len(near) == 0 {
		return Chip{}, false
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].Half < near[j].Half })
	return near[len(near)/2], true
}

// chip is the accelerator of a row. taken says, where it is not in the catalogue
// by its name, what it was taken for; guessed is set where nothing is known of it.
func (r Row) chip(chips Chips) (c Chip, ok bool, taken string, guessed bool) {
	if c, ok = chips.Find(r.Spec, r.GPU); ok || r.Spec == "" && r.GPU == "" {
		return c, ok, "", false
	}
	for _, n := range []string{r.Spec, r.GPU} {
		if c, ok = chips.meant(n, or(r.GPUMem, 0)); ok {
			return c, true, n + " is taken for " + c.Name, false
		}
	}
	if c, ok = chips.standIn(or(r.GPUMem, 0)); ok {
		return c, true, "nothing is known of the accelerator " + r.accelerator() + ": it is taken for one like " +
			c.Name, true
	}
	return c, false, "", false
}
