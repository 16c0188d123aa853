package commit

import (
	"fmt"
	"slices"
	"strings"
)

// A shape defines generated demand: its units by day, in thousandths of the base, and whether hours of the day and days
// of the week differ.
type shape struct {
	name, says string
	cyclic     bool
	level      func(day, days int) int64
}

var shapes = []shape{
	{"growth", "grows by two thirds a year, with busy hours and quiet weekends", true,
		func(day, _ int) int64 { return 1000 + int64(day)*667/365 }},
	{"season", "grows by a tenth a year and doubles in November and December", true, func(day, _ int) int64 {
		n := 1000 + int64(day)*100/365
		if day%365 >= 304 {
			n *= 2
		}
		return n
	}},
	{"fall", "grows, and halves for good after five sixths of the time", true, func(day, days int) int64 {
		n := 1000 + int64(day)*667/365
		if day >= days*5/6 {
			n /= 2
		}
		return n
	}},
	{"flat", "is the same in every hour", false, func(int, int) int64 { return 1000 }},
	{"batch", "is a tenth, but for one week of four", false, func(day, _ int) int64 {
		if day%28 < 7 {
			return 1000
		}
		return 100
	}},
	{"from-zero", "is zero for fourteen months, then grows", true,
		func(day, _ int) int64 { return max(0, int64(day-425)) * 3000 / 365 }},
}

// Shapes returns the names of generated demand with their descriptions.
func Shapes() (list []string) {
	for _, s := range shapes {
		list = append(list, s.name+" ("+s.says+")")
	}
	return list
}

// busy is the demand of each hour of a day, in per cent of the mean.
var busy = [24]int64{62, 58, 55, 54, 55, 60, 72, 88, 108, 126, 138, 142, 140, 142, 145, 144, 140, 132, 120, 108, 97, 86,
	76, 68}

// Generate returns hours of generated demand. It is deterministic in seed.
func Generate(name string, hours int, base int64, seed uint64) (Region, error) {
	at := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
	if at < 0 {
		return Region{}, fmt.Errorf("shape %q is none of %s", name, strings.Join(Shapes(), ", "))
	}
	s, r := shapes[at], Region{Name: name}
	for h := range hours {
		day := h / 24
		n := base * s.level(day, hours/24) / 1000
		if s.cyclic {
			n = n * busy[h%24] / 100
			if day%7 >= 5 {
				n = n * 70 / 100
			}
			n = n * (90 + int64(mixed(seed+uint64(h))%21)) / 100 // up to a tenth more or less
		}
		r.Units = append(r.Units, n)
	}
	return r, nil
}

// mixed mixes the bits of a count (a 64-bit finalizer): portable noise.
func mixed(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>32) * 0xd6e8feb86659fd93
	n = (n ^ n>>32) * 0xd6e8feb86659fd93
	return n ^ n>>32
}
