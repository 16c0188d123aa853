package core_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/test/must"
)

// The counts of missed deadlines equal those of a plain scan of every job that has ended, also after a restart from a
// snapshot; jobs without a deadline, and cancelled ones, do not count.
func TestShares_CountMissedDeadlines(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	c := newCrowd(t, 3)
	c.add("vision", time.Hour, func(t *core.Terms) { t.Deadline = c.now.Add(time.Minute) })
	c.next() // before the shares are on
	c.sharesFor(fair.MostHalfLife, fair.Team{Name: "vision", Weight: 2})
	teams := []string{"vision", "text", "Text", "quiet"}
	for i := range 60 {
		c.add(teams[i%4], time.Hour, func(t *core.Terms) {
			if i%4 < 3 && i%5 > 0 {
				t.Deadline = c.now.Add(time.Duration(1+rng.IntN(7)) * time.Hour)
			}
		})
	}
	c.step("user:ann", core.JobEnded{Job: "vision-41"})
	for range 55 {
		c.next()
	}
	want := map[string][2]int{} // missed, met
	for j := range c.m.Jobs() {
		d := j.Terms().Deadline
		if j.ID() == "vision-0" || d.IsZero() || j.Finished().IsZero() || j.State() != core.Succeeded {
			continue
		}
		n := want[fair.Key(j.Terms().Owner.Team)]
		if j.Finished().After(d) {
			n[0]++
		} else {
			n[1]++
		}
		want[fair.Key(j.Terms().Owner.Team)] = n
	}
	if want["vision"][0] == 0 || want["text"][1] == 0 {
		t.Fatalf("the jobs test nothing: %v", want)
	}
	text, err := c.m.Snapshot()
	must.Do(t, err)
	again, err := core.Restore(text)
	must.Do(t, err)
	list, _ := again.Shares(c.now)
	for _, s := range list {
		n := want[fair.Key(s.Name)]
		if s.Missed != n[0] || s.Met != n[1] {
			t.Errorf("%s missed %d and met %d, want %v", s.Name, s.Missed, s.Met, n)
		}
		if _, known := s.MissShare(); known != (n != [2]int{}) {
			t.Errorf("%s: the share is known: %v", s.Name, known)
		}
	}
	list, _ = c.m.Shares(c.now.Add(2 * fair.MostHalfLife))
	for _, s := range list {
		if s.Missed+s.Met > 0 {
			t.Errorf("two windows later %s has %d and %d", s.Name, s.Missed, s.Met)
		}
	}
}
