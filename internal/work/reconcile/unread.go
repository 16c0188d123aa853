package reconcile

import (
	"fmt"
	"strings"

	"scrimp/internal/work/bill"
)

// unread is what is known about the rows of the bills that could not be read.
type unread struct {
	file  int                     // the present one
	named map[string]int          // rows by the instance that they may be of
	torn  map[int]bool            // files with a row that may be of any machine
	files map[string]map[int]bool // by instance: files with its lines
}

func newUnread() unread {
	return unread{named: map[string]int{}, torn: map[int]bool{}, files: map[string]map[int]bool{}}
}

// lineOf remembers that the present file has a line of the machine.
func (u *unread) lineOf(instance string) {
	if u.files[instance] == nil {
		u.files[instance] = map[int]bool{}
	}
	u.files[instance][u.file] = true
}

// File begins the rows of another file.
func (b *Books) File() { b.unread.file++ }

// Unread remembers which machines an unread row may be of. A row that repeats an earlier one is of none.
func (b *Books) Unread(p *bill.Problem) {
	if p.Repeats > 0 {
		return
	}
	machines, known := b.mayBe(p.About)
	if !known {
		b.unread.torn[b.unread.file] = true
	}
	for name := range machines {
		b.unread.named[name]++
	}
}

// mayBe returns the instances that a row may be of. Known is false if any could be it.
func (b *Books) mayBe(a *bill.About) (instances map[string]bool, known bool) {
	if a == nil {
		return nil, false
	}
	instances = map[string]bool{}
	for _, name := range []string{a.Resource, a.Resource[strings.LastIndexAny(a.Resource, "/:")+1:]} {
		if b.instances[name] {
			instances[name] = true
			return instances, true
		}
	}
	for _, tag := range []string{a.Attempt, a.Job} {
		for _, f := range b.jobs[tag] {
			instances[f.Instance] = true
		}
	}
	switch {
	case len(instances) > 0 || a.Resource != "":
		return instances, true
	case a.TagsUnread:
		return nil, false
	}
	for name, all := range b.types {
		if names(a.SKU, name) || names(a.Description, name) {
			for _, f := range all {
				instances[f.Instance] = true
			}
		}
	}
	return instances, true
}

// Waits returns what keeps the difference of a machine unknown: rows that could not be read, or lines in another
// currency. Named reports whether these are known to be of this machine. Without either it returns "".
func (b *Books) Waits(instance string) (why string, named bool) {
	switch n := b.unread.named[instance]; {
	case n == 1:
		return "a row of the bill that may be of it could not be read", true
	case n > 1:
		return fmt.Sprintf("%d rows of the bill that may be of it could not be read", n), true
	case b.foreign[instance] != "":
		return fmt.Sprintf("its lines are in %s, and no rate is known", b.foreign[instance]), true
	case len(b.unread.torn) == 0:
		return "", false
	}
	for file := range b.unread.files[instance] {
		if b.unread.torn[file] {
			return torn, false
		}
	}
	if len(b.unread.files[instance]) > 0 {
		return "", false
	}
	return torn, false
}

const torn = "a row of the bill could not be read, and it does not say which machine it is of"
