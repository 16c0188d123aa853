// Package naming gives jobs and groups names that no other has.
package naming

import (
	"context"
	"fmt"
	"sync"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
)

// Names reserves names of jobs and groups, which share one space of names.
type Names struct {
	Control *control.Control

	mu      sync.Mutex      // guards the fields below
	pending map[string]bool // names of submissions in progress
	numbers map[string]int  // by job name: the lowest number that may be free
}

// Reserve reserves an unused name for a job or a group: the wanted one, with a number from the second on. The caller
// calls done after the job is in the log.
func (ns *Names) Reserve(ctx context.Context, wanted string) (id string, done func(), err error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	first := max(1, ns.numbers[wanted]) // lower numbers stay in use, and there can be very many
	for n, some := first, 1; id == ""; n, some = n+some, namesAtOnce {
		taken, err := ns.taken(ctx, wanted, n, some)
		if err != nil {
			return "", nil, err
		}
		for k, is := range taken {
			switch {
			case is && n+k == first:
				first++
			case !is && !ns.pending[numbered(wanted, n+k)] && id == "":
				id = numbered(wanted, n+k)
			}
		}
	}
	if ns.numbers == nil {
		ns.numbers, ns.pending = map[string]int{}, map[string]bool{}
	}
	if first > 1 {
		ns.numbers[wanted] = first
	}
	ns.pending[id] = true
	return id, func() {
		ns.mu.Lock()
		defer ns.mu.Unlock()
		delete(ns.pending, id)
	}, nil
}

// namesAtOnce is the number of candidates checked at once if the job's own name is in use.
const namesAtOnce = 16

// numbered returns the n-th name for a job: its own, with a number from the second on.
func numbered(wanted string, n int) string {
	if n == 1 {
		return wanted
	}
	return fmt.Sprintf("%s-%d", wanted, n)
}

// taken reports which of some names, from the n-th on, belong to a job or a group, archived or not.
func (ns *Names) taken(ctx context.Context, wanted string, n, some int) (taken []bool, err error) {
	taken = make([]bool, some)
	var free []string
	ns.Control.ReadUncommitted(func(m *core.Machine) { // includes names that are being written
		for k := range taken {
			if _, taken[k] = m.Job(numbered(wanted, n+k)); taken[k] {
				continue
			}
			if taken[k] = m.State().Group(numbered(wanted, n+k)) != nil; !taken[k] {
				free = append(free, numbered(wanted, n+k))
			}
		}
	})
	archived, err := ns.Control.Taken(ctx, free...)
	for k := range taken {
		taken[k] = taken[k] || archived[numbered(wanted, n+k)]
	}
	return taken, err
}
