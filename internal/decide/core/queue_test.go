package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/test/lane"
)

// tidyQueue says what is wrong with the indexes of the queue; "" for nothing.
func tidyQueue(m *Machine) string {
	q := &m.queue
	waits, groups, equivalences := 0, map[*group]int{}, map[*equivalence]map[*group]bool{}
	for j := range m.Jobs() {
		p, g := at(j).subqueue, at(j).group
		if !at(j).waits {
			if g != nil || p != nil {
				return j.ID() + " does not wait, and is counted"
			}
			continue
		}
		if g == nil || p == nil {
			return j.ID() + " waits, and lies nowhere"
		}
		if j.Asked() != nil {
			return j.ID() + " waits in the queue, and for an answer"
		}
		waits++
		groups[g]++
		if equivalences[g.equivalence] == nil {
			equivalences[g.equivalence] = map[*group]bool{}
		}
		equivalences[g.equivalence][g] = true
		equivalence := equivalenceOf(j.Terms().Need)
		switch {
		case p.group != g || p.sides[at(j).side][at(j).index] != j:
			return j.ID() + " is not where it says"
		case !slices.Contains(p.class.subqueues, p) || !slices.Contains(q.classes, p.class):
			return j.ID() + " lies where nobody looks"
		case p.class.key != m.classBy(j).key:
			return fmt.Sprintf("%s is in class %q, and its quotas are %q", j.ID(), p.class.key, m.classBy(j).key)
		case !slices.Equal(p.class.quotas, m.classBy(j).quotas):
			return j.ID() + " is under quotas that are none any more"
		case q.groups[g.key] != g || q.equivalences[g.equivalence.key] != g.equivalence:
			return j.ID() + " is of a group that is forgotten"
		case g.key != loose && (g.equivalence.key != equivalence || g.key != string(groupOf(nil, equivalence, j))):
			return j.ID() + " is of another group"
		case (g.key == loose) != at(j).loose:
			return j.ID() + " is loose or not"
		}
	}
	for g, n := range groups {
		if g.jobs != n {
			return fmt.Sprintf("%d jobs are counted for a group of %d", g.jobs, n)
		}
	}
	for k, of := range equivalences {
		if k.groups != len(of) {
			return fmt.Sprintf("%d groups are counted for a equivalence of %d", k.groups, len(of))
		}
	}
	if waits != q.Len() || len(groups) != len(q.groups) || len(equivalences) != len(q.equivalences) {
		return fmt.Sprintf("%d wait in %d groups of %d equivalences, and %d, %d and %d are counted", waits, len(groups), len(equivalences), q.Len(), len(q.groups), len(q.equivalences))
	}
	for _, c := range q.classes {
		for _, p := range c.subqueues {
			for side, u := range p.sides {
				for i := 1; i < len(u); i++ {
					if before(u[i], u[(i-1)/2]) {
						return fmt.Sprintf("side %d of a subqueue is in no order", side)
					}
				}
			}
			if p.class != c {
				return "a subqueue lies in two classes"
			}
		}
	}
	return ""
}

// Whatever happens, each job that waits lies in one subqueue, which is under the quotas
// that hold it, also after these were set anew and after a restart.
func TestTheQueueIsTidy(t *testing.T) {
	unschedulable, moved, looseJobs := 0, 0, 0
	for seed := range uint64(lane.Pick(40, 1_000)) {
		n := &noise{rng: rand.New(rand.NewPCG(seed, 12)), now: time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)}
		m := New()
		crowd := 0
		for i := range 300 {
			e := n.event()
			switch b := e.Body.(type) {
			case BudgetsSet:
				e.Body = n.limitsOf()
				moved += m.queue.Len()
			case JobSubmitted:
				if crowd++; n.rng.IntN(3) > 0 {
					b.Job = fmt.Sprint("j", crowd)
				}
				b.Terms.Owner = ledger.Owner{Team: n.pick("t", "u"), Project: n.pick("x", ""), Tags: map[string]string{"k": n.pick("1", "2")}}
				switch n.rng.IntN(4) {
				case 0:
					b.Terms.Need.CPUs = 5000 + n.rng.IntN(2)
				case 1:
					b.Terms.Need.Ladder = []plan.Rung{{For: time.Hour}}
				}
				e.Body, e.Actor = b, n.pick("user", "user:ann")
			}
			m.Step(e)
			if seed%20 == 0 && i == 100 { // more groups than are told apart
				for k := range 2 * mostGroups {
					m.Step(Event{At: m.now(), Schema: Schema, Tenant: "default", Actor: "user", Body: JobSubmitted{Job: fmt.Sprint("many", k), Terms: Terms{
						Name: "many", Owner: ledger.Owner{Team: "t", Tags: map[string]string{"run": fmt.Sprint(k), "k": "1"}}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 9000}}}}})
				}
			}
			if wrong := tidyQueue(m); wrong != "" {
				t.Fatalf("seed %d, event %d (%s): %s", seed, i, e.Body.Kind(), wrong)
			}
			if i%100 == 50 {
				restored, err := Restore(snap(t, m))
				if err != nil {
					t.Fatal(err)
				}
				if wrong := tidyQueue(restored); wrong != "" {
					t.Fatalf("seed %d, event %d, after a restart: %s", seed, i, wrong)
				}
				if a, b := m.queue.Len(), restored.queue.Len(); a != b {
					t.Fatalf("seed %d, event %d: after a restart %d jobs wait and not %d", seed, i, b, a)
				}
				m = restored
			}
			for _, k := range m.queue.equivalences {
				if k.unschedulable {
					unschedulable++
				}
			}
			if g := m.queue.groups[loose]; g != nil {
				looseJobs += g.jobs
			}
		}
	}
	if unschedulable < 100 || moved < lane.Pick(100, 1000) || looseJobs < 1000 {
		t.Errorf("%d looks saw an equivalence class that is passed over, %d jobs were under quotas that changed, %d were loose: the lives are too dull", unschedulable, moved, looseJobs)
	}
}
