package sim

import (
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// mostAfter bounds the duration of a termination, including the delays of the faults.
const mostAfter = 30 * time.Minute

// checkIdle compares the idle times of machines with their postings, and every machine's parts with the whole. It
// returns the idle cost by team.
func (w *World) checkIdle() map[string]money.Amount {
	teams, posted := map[string]money.Amount{}, map[string]money.Amount{}
	for _, p := range w.postings {
		if p.Owner.Job != "" || !strings.Contains(p.Owner.Task, "/idle.") {
			continue
		}
		amount := cost(p)
		posted[p.Owner.Task] = posted[p.Owner.Task].Add(amount)
		teams[p.Owner.Team] = teams[p.Owner.Team].Add(amount)
	}
	for _, i := range w.m.State().Instances() {
		if !i.Shared() {
			continue
		}
		if len(i.Idles()) > 0 {
			w.saw("a machine waits for a job")
		}
		all := money.Amount{}
		for _, idle := range i.Idles() {
			if got := idle.Posted.Add(idle.Rules); got != posted[idle.Owner.Task] {
				w.breaks("idle: %s cost %v, its postings say %v", idle.Owner.Task, got, posted[idle.Owner.Task])
			}
			if len(w.sellers) == 0 && idle.Until.Sub(idle.Keep) > w.away+mostAfter {
				w.breaks("idle: %s waits until %v, and was to be given back at %v", i.ID(), idle.Until, idle.Keep)
			}
			all = all.Add(idle.Posted)
		}
		for _, name := range i.Served() {
			a := w.attempt(name)
			if a == nil {
				w.breaks("archive: %s had a part of %s, and nobody knows it", name, i.ID())
				continue
			}
			all = all.Add(a.On(i.ID()).Posted())
		}
		if all != i.Posted() {
			w.breaks("idle: %s was charged %v, and its parts %v", i.ID(), i.Posted(), all)
		}
	}
	return teams
}
