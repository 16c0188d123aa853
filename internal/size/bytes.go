// Package size holds quantities of storage and memory.
package size

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a size. Text carries its unit: 80GiB, 500MB, 1.5TiB.
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

// Parse reads a size with its unit, such as 80GiB or 1.5GB.
func Parse(s string) (Bytes, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.TrimSpace(s), u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || f < 0 || f*float64(u.size) >= 1<<62 {
			break
		}
		return Bytes(f * float64(u.size)), nil
	}
	return 0, fmt.Errorf("%q is not a size with its unit, such as 80GiB or 500MB", s)
}

// String returns the size in the largest binary unit that keeps it at 1 or above, exact where it is whole.
func (b Bytes) String() string {
	for _, u := range units[:4] {
		if b >= u.size {
			return strconv.FormatFloat(float64(b)/float64(u.size), 'g', 4, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
