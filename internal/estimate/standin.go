package estimate

import (
	"math"
	"sort"
	"strings"

	"scrimp/internal/market/accelerator"
)

// makers lists prefixes of accelerator names that do not distinguish them.
var makers = map[string]bool{"nvidia": true, "tesla": true, "geforce": true, "quadro": true, "amd": true,
	"instinct": true, "google": true, "cloud": true, "aws": true, "gpu": true, "rtx": true}

// words splits an accelerator's name into comparable words: "NVIDIA A100-SXM4-80GB" becomes a100, sxm, 80gb.
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

// meant returns the accelerator for an unknown spelling. The first word must match; among the matches it prefers the
// most words in common, then the closest memory, then the maker's own boards.
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

// standIn replaces an unknown accelerator by the one with the median rate among those with about the same memory.
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

// chip returns the accelerator of a row. If the catalogue does not have its name, taken describes the stand-in; guessed
// is set if nothing is known about it.
func (r Row) chip(chips Chips) (c Chip, ok bool, taken string, guessed bool) {
	if c, ok = chips.Find(r.Spec, r.GPU); ok || r.Spec == "" && r.GPU == "" {
		return c, ok, "", false
	}
	if accelerator.IsPart(r.Spec) || accelerator.IsPart(r.GPU) {
		return c, false, "", false
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
