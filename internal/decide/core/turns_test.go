package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/money"
)

// If teams share the queue, the predicted courses of waiting jobs have the order in which the jobs then start.
func TestCourses_OrderIsThatOfTheShares(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := newCrowd(t, 1+rng.IntN(3))
		text := fair.Team{Name: "text", Weight: 1 + 4*rng.Float64()}
		if seed%2 == 1 {
			text.Guarantee, text.Borrow = money.Rate(1e12), new(money.Rate(rng.Int64N(2e12)))
		}
		c.sharesFor(fair.MostHalfLife, fair.Team{Name: "vision", Weight: 1}, text)
		for range 25 {
			team := []string{"vision", "text", "text", "", "audio"}[rng.IntN(5)]
			c.add(team, time.Duration(1+rng.IntN(1000))*time.Minute, func(t *core.Terms) { t.Priority = rng.IntN(5) / 4 })
		}
		var want []string
		list, _, _ := c.m.Courses(c.now, 100)
		for _, x := range list {
			if !x.Runs {
				want = append(want, x.ID)
			}
		}
		begun := len(c.started)
		for c.next() {
		}
		if got := c.started[begun:]; len(got) < 20 || !slices.Equal(got, want) {
			t.Errorf("seed %d: started\n%s, expected\n%s", seed, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
}
