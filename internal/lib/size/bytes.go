// Package size holds quantities of storage and memory.
package size

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Bytes is a size. As text it has a unit: 80GiB, 500MB, 1.5TiB.
type Bytes int64

// Units of size, decimal and binary.
const (
	KB  Bytes = 1000
	MB        = 1000 * KB
	GB        = 1000 * MB
	TB        = 1000 * GB
	KiB Bytes = 1024
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
	TiB       = 1024 * GiB
)

var units = []struct {
	name string
	size Bytes
}{
	{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
	{"TB", TB}, {"GB", GB}, {"MB", MB}, {"KB", KB}, {"kB", KB}, {"B", 1},
}

// Parse reads a size with its unit, such as 80GiB or 1.5GB: a decimal without sign or exponent. It drops fractions of a
// byte. Sizes must be below 4 EiB.
func Parse(s string) (Bytes, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.TrimSpace(s), u.name)
		if !ok {
			continue
		}
		if n, ok := count(strings.TrimSpace(number), u.size); ok {
			return n, nil
		}
		break
	}
	return 0, fmt.Errorf("%.80q is not a size with its unit, such as 80GiB or 500MB", s)
}

// count returns number times unit, exactly: a float64 would lose bytes above 8 PiB.
func count(number string, unit Bytes) (Bytes, bool) {
	whole, frac, point := strings.Cut(number, ".")
	if whole == "" || point && frac == "" || len(number) > 60 {
		return 0, false
	}
	for _, r := range whole + frac {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, _ := new(big.Int).SetString(whole+frac, 10)
	n.Mul(n, big.NewInt(int64(unit)))
	n.Quo(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(frac))), nil))
	return Bytes(n.Int64()), n.BitLen() <= 62
}

// String writes the size in the largest binary unit in which it is at least 1: exactly if it is whole in that unit,
// otherwise with at most three decimals.
func (b Bytes) String() string {
	for _, u := range units[:4] {
		switch {
		case b < u.size:
		case b%u.size == 0:
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		default:
			// Never round up, so that a size just below a unit does not look whole.
			thousandths := int64(b % u.size * 1000 / u.size)
			text := fmt.Sprintf("%d.%03d", b/u.size, thousandths)
			return strings.TrimRight(strings.TrimRight(text, "0"), ".") + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Exact returns the shortest form that Parse reads as b, such as 200GB or 120GiB.
func (b Bytes) Exact() string {
	best := strconv.FormatInt(int64(b), 10) + "B"
	for _, u := range units {
		if text := strconv.FormatInt(int64(b/u.size), 10) + u.name; b%u.size == 0 && len(text) < len(best) {
			best = text
		}
	}
	return best
}

// About writes a measured size with three significant digits: 1.68GiB, 325KiB. Other sizes are written exactly.
func About(bytes float64) string {
	name, unit := "B", 1.0
	for _, u := range []struct {
		name string
		size Bytes
	}{{"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}, {"TiB", TiB}} {
		if bytes >= 999.5*unit {
			name, unit = u.name, float64(u.size)
		}
	}
	v := bytes / unit
	places := 2
	if v >= 9.995 {
		places = 1
	}
	if v >= 99.95 || unit == 1 {
		places = 0
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if places > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + name
}
