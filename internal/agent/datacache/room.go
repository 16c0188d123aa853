package datacache

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/agent/setup"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/egress"
	"scrimp/internal/work/evict"
)

// Limits bound the size of a cache.
type Limits struct {
	Bytes   int64   // of all files; 0: Share of the disk
	Share   float64 // of the disk, from 0 to 1
	Reserve float64 // share of the disk that must stay free

	disk func(string) (free, whole int64, err error) // for tests; nil: setup.Disk
}

// ReadLimits reads a size such as 200GB, or a share of the disk from 0 to 1, and the share of the disk that stays free.
// An empty bound means half the disk.
func ReadLimits(bound string, reserve float64) (Limits, error) {
	l := Limits{Share: 0.5, Reserve: reserve}
	if bound == "" {
		return l, nil
	}
	if v, err := strconv.ParseFloat(bound, 64); err == nil && v >= 0 && v <= 1 {
		l.Share = v
		return l, nil
	}
	b, err := size.Parse(bound)
	if err != nil || b == 0 {
		return l, fmt.Errorf("SCRIMP_CACHE is %q, want the size of the cache of data, such as 200GB, or a share of the "+
			"disk from 0 to 1", bound)
	}
	l.Bytes = int64(b)
	return l, nil
}

// room returns how many bytes all files may have, and how many more fit on the disk.
func (c *Cache) room() (most, spare int64, err error) {
	disk := c.limits.disk
	if disk == nil {
		disk = setup.Disk
	}
	free, whole, err := disk(c.dir)
	if err != nil {
		return 0, 0, err
	}
	if most = c.limits.Bytes; most == 0 {
		most = int64(c.limits.Share * float64(whole))
	}
	return most, free - int64(c.limits.Reserve*float64(whole)) - c.pending, nil
}

// fits returns an error if so many bytes, besides the files that programs may be reading, do not fit. It removes
// nothing.
func (c *Cache) fits(bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	most, spare, err := c.room()
	if err != nil {
		return err
	}
	var held, idle int64
	for _, e := range c.contents() {
		if e.Needed {
			held += e.Bytes
		} else {
			idle += e.Bytes
		}
	}
	if held+c.flying+bytes > most || bytes > spare+idle {
		return c.full(bytes, min(most-held-c.flying, spare+idle), most)
	}
	return nil
}

func (c *Cache) full(bytes, left, most int64) error {
	about := func(n int64) string { return size.About(float64(max(0, n))) }
	return fmt.Errorf("%w: %s more, and it can take %s of at most %s: set SCRIMP_CACHE of the machine's agent to a "+
		"larger size, or take a machine with a larger disk", ErrRoom, about(bytes), about(left), about(most))
}

// ahead is the part of the bound that an eviction frees beyond what it must, because choosing reads all entries.
const ahead = 16

// reserve makes room for a file, and counts it until land is called. The caller holds the lock.
func (c *Cache) reserve(bytes, there int64) error {
	most, spare, err := c.room()
	if err != nil {
		return err
	}
	missing := bytes - there
	if bytes > most-c.flying || missing > spare {
		c.removeStale()
		if most, spare, err = c.room(); err != nil {
			return err
		}
	}
	if fit := min(most-c.flying-bytes, c.total+spare-missing); fit < c.total {
		gone := map[string]bool{}
		for _, e := range evict.Choose(c.contents(), fit-most/ahead, c.now()) {
			if err := os.Remove(c.object(e.Job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.forget(gone)
				return err
			}
			gone[e.Job] = true
		}
		if c.forget(gone); c.total > fit {
			return c.full(bytes, fit-c.total+bytes, most)
		}
	}
	c.flying += bytes
	c.pending += missing
	return nil
}

// removeStale removes incomplete files that nobody fetches any more. The caller holds the lock.
func (c *Cache) removeStale() {
	names, _ := os.ReadDir(filepath.Dir(c.partial("x"))) // none if it cannot be read
	for _, n := range names {
		if c.flights[n.Name()] == nil {
			_ = os.Remove(c.partial(n.Name())) // reserve fails if that makes no room
		}
	}
}

// contents lists the contents by digest, in the form in which package evict chooses those of the least value: the price
// of reading them again times the odds that a program uses them.
func (c *Cache) contents() []evict.Entry {
	by := map[string]*evict.Entry{}
	for _, e := range c.entries {
		v := by[e.Digest]
		if v == nil {
			v = &evict.Entry{Job: e.Digest, Bytes: e.Bytes, Made: e.Made, Priced: true, Needed: c.holds[e.Digest] > 0}
			by[e.Digest] = v
		}
		if e.Gigabyte == nil {
			v.Priced = false
		} else if cost := egress.Cost(e.Bytes, *e.Gigabyte); v.Cost.Sub(cost).Sign() < 0 {
			v.Cost = cost
		}
		if e.Made.After(v.Made) {
			v.Made = e.Made
		}
		v.Uses = append(v.Uses, e.Uses...)
	}
	list := make([]evict.Entry, 0, len(by))
	for _, digest := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[digest])
	}
	return list
}

// used notes a use of an entry. The caller holds the lock.
func (e *entry) used(at time.Time) {
	e.Uses = append(e.Uses, at)
	e.Uses = slices.Clone(e.Uses[max(0, len(e.Uses)-mostUses):])
}
