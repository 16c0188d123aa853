package storage

import (
	"cmp"
	"container/heap"
	"math/big"
	"slices"
	"strings"
)

// maxCandidates bounds the files whose contents are compared: the largest.
const maxCandidates = 100_000

// Candidates collects the files whose contents may be equal: those of at least some size, and no second names of a
// file.
type Candidates struct {
	Least int64 // bytes; 0: compare nothing
	files largest
	Left  int64 // smaller files left out because there are too many
}

// largest is a heap with the smallest file first.
type largest []File

func (l largest) Len() int           { return len(l) }
func (l largest) Less(i, j int) bool { return l[i].Bytes < l[j].Bytes }
func (l largest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *largest) Push(x any)        { *l = append(*l, x.(File)) } //nolint:forcetypeassert // only files come here
func (l *largest) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// Add adds a file if it counts.
func (c *Candidates) Add(f File) {
	if c.Least <= 0 || f.Disk() < c.Least || f.Again {
		return
	}
	if len(c.files) == maxCandidates {
		c.Left++
		if f.Bytes <= c.files[0].Bytes {
			return
		}
		heap.Pop(&c.files)
	}
	heap.Push(&c.files, f)
}

// SameSize returns the groups of two and more files of one size, the largest first.
func (c *Candidates) SameSize() (groups [][]File) {
	list := []File(c.files)
	slices.SortFunc(list, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Place-b.Place, strings.Compare(a.Path, b.Path))
	})
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Bytes == list[0].Bytes {
			n++
		}
		if n > 1 {
			groups = append(groups, list[:n])
		}
		list = list[n:]
	}
	return groups
}

// Duplicates are files with the same contents.
type Duplicates struct {
	Digest string
	Files  []File
}

// Extra returns the bytes on disk of all copies but the one that takes most.
func (d Duplicates) Extra() (sum int64) {
	most := int64(0)
	for _, f := range d.Files {
		sum, most = sum+f.Disk(), max(most, f.Disk())
	}
	return sum - most
}

// Month returns the cost a month of all copies but the one that costs most, or false if the price of a copy is unknown.
func (d Duplicates) Month(places []Place, prices Prices) (*big.Rat, bool) {
	sum, most := new(big.Rat), new(big.Rat)
	for _, f := range d.Files {
		one, ok := prices.Month(places[f.Place].Store, f)
		if !ok {
			return nil, false
		} else if sum.Add(sum, one); one.Cmp(most) > 0 {
			most = one
		}
	}
	return sum.Sub(sum, most), true
}
