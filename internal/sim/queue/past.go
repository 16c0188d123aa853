package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/pack"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Past is a job of a server's log that succeeded.
type Past struct {
	ID, Name, Image string
	Submitted       time.Time
	Work            time.Duration // measured; 0: unknown
	Start           time.Duration // from the machine's launch to the first progress
	Nodes           int           // machines at once; 0: one
	CPUs            int
	Memory          int64 // in bytes
	Accelerator     string
	Accelerators    int
	Team            string // for Limited, like Priority
	Priority        int
}

// Sale is a machine type for sale, at its price.
type Sale struct {
	Name         string
	CPUs         int
	Memory       int64 // in bytes
	Accelerator  string
	Accelerators int
	Price        money.Rate
}

// Pool is the jobs and machines of one kind of accelerator, which no other pool shares.
type Pool struct {
	Accelerator string // empty: none
	Jobs        []Job
	Types       []Machine
}

// LeftOut counts the jobs that a replay leaves out.
type LeftOut struct {
	Unknown int `json:"work_unknown"`     // their work was not measured
	Gangs   int `json:"several_machines"` // they need several machines at once
	Large   int `json:"too_large"`        // no machine type for sale is that large, or has their accelerator
}

// Pools turns past jobs and the machine types for sale into traces, one for each kind of accelerator. Machines come at
// once: what a job needed to start counts as its own. All types count as equally fast. A type that costs nothing, such
// as a machine of one's own, is no type: every job would go there.
func Pools(jobs []Past, sales []Sale) (pools []Pool, left LeftOut) {
	byKind := map[string]*Pool{}
	at := func(kind string) *Pool {
		if byKind[kind] == nil {
			byKind[kind] = &Pool{Accelerator: kind}
		}
		return byKind[kind]
	}
	for _, t := range cheapest(sales) {
		at(t.Accelerator).Types = append(at(t.Accelerator).Types, Machine{Name: t.Name, Price: t.Price,
			Size: sizeOf(t.Accelerators, t.CPUs, t.Memory/gigabyte)})
	}
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b Past) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	kinds, images := map[string]int{}, map[string]int{}
	for _, p := range jobs {
		j := Job{ID: p.ID, Workload: p.Name, Kind: number(kinds, p.Name), Image: number(images, p.Image),
			Arrival: int64(p.Submitted.Sub(jobs[0].Submitted) / time.Second), Work: min(int64(p.Work), mostSeconds*unit),
			Init: min(int64((p.Start+time.Second-1)/time.Second), mostSeconds),
			Size: sizeOf(p.Accelerators, p.CPUs, (p.Memory+gigabyte-1)/gigabyte)}
		kind := p.Accelerator
		if p.Accelerators == 0 {
			kind = ""
		}
		switch {
		case p.Work <= 0:
			left.Unknown++
		case p.Nodes > 1:
			left.Gangs++
		case !fitsAny(j.Size, at(kind).Types) || j.Arrival > mostSeconds:
			left.Large++
		default:
			at(kind).Jobs = append(at(kind).Jobs, j)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		if len(byKind[kind].Jobs) > 0 {
			pools = append(pools, *byKind[kind])
		}
	}
	return pools, left
}

// gigabyte is the unit of memory of a machine type, as clouds state it.
const gigabyte = int64(size.GiB)

func sizeOf(gpus, cpus int, gigabytes int64) (s pack.Size) {
	s[pack.GPU], s[pack.CPU] = int64(gpus)*pack.Milli, int64(cpus)*pack.Milli
	s[pack.Memory] = min(gigabytes, mostSize) * pack.Milli
	return s
}

// cheapest returns the cheapest sale of each machine type, in the order of names.
func cheapest(sales []Sale) []Sale {
	best := map[string]Sale{}
	for _, s := range sales {
		s.Name = fmt.Sprintf("%s (%d, %d)", s.Name, s.Accelerators, s.CPUs) // providers use the same names
		if b, known := best[s.Name]; s.Price > 0 && (!known || s.Price < b.Price) {
			best[s.Name] = s
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b Sale) int { return cmp.Compare(a.Name, b.Name) })
}
