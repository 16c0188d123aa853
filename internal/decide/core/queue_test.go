package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// looseIn counts the loose jobs in the queue.
func looseIn(m *Machine) (n int) {
	for _, g := range m.queue.Queue.Groups {
		if g.Equivalence.Key == queue.Loose {
			n += g.Jobs
		}
	}
	return n
}

// tidyQueue returns the first inconsistency in the indexes of the queue, or "".
func tidyQueue(m *Machine) string {
	q := &m.queue.Queue
	waits, groups, equivalences := 0, map[*queue.Group]int{}, map[*queue.Equivalence]map[*queue.Group]bool{}
	for j := range m.Jobs() {
		p, g := queue.At(j).Subqueue, queue.At(j).Group
		if !queue.At(j).Waits {
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
		if equivalences[g.Equivalence] == nil {
			equivalences[g.Equivalence] = map[*queue.Group]bool{}
		}
		equivalences[g.Equivalence][g] = true
		equivalence := queue.EquivalenceOf(j.Terms().Need)
		switch {
		case p.Group != g || p.Sides[queue.At(j).Side][queue.At(j).Index] != j:
			return j.ID() + " is not where it says"
		case !slices.Contains(p.Class.Subqueues, p) || !slices.Contains(q.Classes, p.Class):
			return j.ID() + " lies where nobody looks"
		case p.Class.Key != m.queue.ClassBy(j).Key:
			return fmt.Sprintf("%s is in class %q, and its quotas are %q", j.ID(), p.Class.Key, m.queue.ClassBy(j).Key)
		case !slices.Equal(p.Class.Quotas, m.queue.ClassBy(j).Quotas):
			return j.ID() + " is under quotas that are none any more"
		case q.Groups[g.Key] != g || q.Equivalences[g.Equivalence.Key] != g.Equivalence:
			return j.ID() + " is of a group that is forgotten"
		case g.Equivalence.Key != queue.Loose && (g.Equivalence.Key != equivalence || g.Key != string(step.GroupKey(nil, equivalence, j))):
			return j.ID() + " is of another group"
		case (g.Equivalence.Key == queue.Loose) != queue.At(j).Loose:
			return j.ID() + " is loose or not"
		}
	}
	for g, n := range groups {
		if g.Jobs != n {
			return fmt.Sprintf("%d jobs are counted for a group of %d", g.Jobs, n)
		}
	}
	for k, of := range equivalences {
		if k.Groups != len(of) {
			return fmt.Sprintf("%d groups are counted for a equivalence of %d", k.Groups, len(of))
		}
	}
	if waits != q.Len() || len(groups) != len(q.Groups) || len(equivalences) != len(q.Equivalences) {
		return fmt.Sprintf("%d wait in %d groups of %d equivalences, and %d, %d and %d are counted", waits, len(groups), len(equivalences), q.Len(), len(q.Groups), len(q.Equivalences))
	}
	for _, c := range q.Classes {
		for _, p := range c.Subqueues {
			for side, u := range p.Sides {
				for i := 1; i < len(u); i++ {
					if queue.Before(u[i], u[(i-1)/2]) {
						return fmt.Sprintf("side %d of a subqueue is in no order", side)
					}
				}
			}
			if p.Class != c {
				return "a subqueue lies in two classes"
			}
		}
	}
	return ""
}

// Each waiting job is in exactly one subqueue, under the quotas that apply to it, whatever happens, including
// changed quotas and a restart.
func TestQueue_IndexesStayConsistent(t *testing.T) {
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
				moved += m.queue.Queue.Len()
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
			if seed%20 == 0 && i == 100 { // more groups than the queue distinguishes
				for k := range 2 * queue.MostGroups {
					m.Step(Event{At: m.step.Now(), Schema: Schema, Tenant: "default", Actor: "user", Body: JobSubmitted{Job: fmt.Sprint("many", k), Terms: Terms{
						Name: "many", Owner: ledger.Owner{Team: "t", Tags: map[string]string{"run": fmt.Sprint(k), "k": "1"}}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 9000}}}}})
				}
			}
			if wrong := tidyQueue(m); wrong != "" {
				t.Fatalf("seed %d, event %d (%s): %s", seed, i, e.Body.Kind(), wrong)
			}
			if i%100 == 50 {
				restored, err := Restore(snap(t, m))
				must.Do(t, err)
				if wrong := tidyQueue(restored); wrong != "" {
					t.Fatalf("seed %d, event %d, after a restart: %s", seed, i, wrong)
				}
				if a, b := m.queue.Queue.Len(), restored.queue.Queue.Len(); a != b {
					t.Fatalf("seed %d, event %d: after a restart %d jobs wait and not %d", seed, i, b, a)
				}
				m = restored
			}
			for _, k := range m.queue.Queue.Equivalences {
				if k.Unschedulable {
					unschedulable++
				}
			}
			looseJobs += looseIn(m)
		}
	}
	if unschedulable < 100 || moved < lane.Pick(100, 1000) || looseJobs < 1000 {
		t.Errorf("%d looks saw an equivalence class that is passed over, %d jobs were under quotas that changed, %d were loose: the lives are too dull", unschedulable, moved, looseJobs)
	}
}
