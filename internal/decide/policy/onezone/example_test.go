package onezone_test

import (
	"fmt"
	"time"

	"scrimp/internal/decide/policy/onezone"
)

// A caller keeps one Watch per spot offer, updated at every look at the market, and one Shelf for all jobs.
func Example() {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var watch onezone.Watch
	watch = watch.See(began, false)
	watch = watch.See(began.Add(3*time.Hour), true)
	watch = watch.See(began.Add(3*time.Hour+20*time.Minute), false)
	watch = watch.See(began.Add(4*time.Hour), true)

	now := began.Add(5 * time.Hour)
	deadline := now.Add(52 * time.Hour)
	shelf := onezone.NewShelf(onezone.Public, 4)
	solver := shelf.Solver(onezone.For(deadline.Sub(now), 12*time.Minute, 10*time.Minute, 0.9731, 3.06))
	verdict := solver.Decide(onezone.State{
		Until: deadline.Sub(now), Left: 48 * time.Hour,
		Held: onezone.None, Market: watch.At(now),
	})
	fmt.Printf("%v: waiting $%.2f, spot $%.2f, on-demand $%.2f; spot lasts another look: %.0f %%, another hour: %.0f %%\n",
		verdict.Choice, verdict.USD[onezone.None], verdict.USD[onezone.Spot], verdict.USD[onezone.OnDemand], 100*verdict.Lasts, 100*verdict.Hour)
	// Output:
	// spot: waiting $125.31, spot $124.70, on-demand $125.71; spot lasts another look: 88 %, another hour: 51 %
}
