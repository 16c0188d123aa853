package hardware

import (
	"math"
	"sort"
	"strings"
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

// Meant returns the accelerator for an unknown spelling. The first word must match; among the matches it prefers the
// most words in common, then the closest memory, then the maker's own boards.
func (c Chips) Meant(name string, mem float64) (Chip, bool) {
	w := words(name)
	if len(w) == 0 {
		return Chip{}, false
	}
	var best Chip
	found, most := false, math.Inf(-1)
	for _, k := range c.Sorted() {
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

// StandIn replaces an unknown accelerator by the one with the median rate among those with about the same memory.
func (c Chips) StandIn(mem float64) (Chip, bool) {
	var near []Chip
	for _, k := range c.Sorted() {
		if k.Half > 0 && k.Band > 0 && (!(mem > 0) || math.Abs(math.Log(k.Mem/mem)) < 0.35) {
			near = append(near, k)
		}
	}
	if len(near) == 0 && mem > 0 {
		return c.StandIn(0)
	}
	if len(near) == 0 {
		return Chip{}, false
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].Half < near[j].Half })
	return near[len(near)/2], true
}
