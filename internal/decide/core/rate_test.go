package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// hourly returns a limit of dollars an hour.
func hourly(scope string, rate money.Rate) budget.Limit {
	return budget.Limit{Scope: budget.Scope(scope), Window: budget.Hour, Rate: &rate}
}

// rated is a crowd on machines of $1, $2 and $3 an hour.
func newRated(t *testing.T, idle time.Duration) *crowd {
	c := newCrowd(t, 1000)
	cfg := *c.m.State().Config()
	cfg.Idle = idle
	c.step("", core.Configured{Config: cfg})
	c.rates = map[market.OfferID]money.Rate{}
	seen := core.MarketSeen{}
	for n := range 3 {
		o := yardOffer(fmt.Sprint("m", n), 0)
		o.CPUs = 4 << n
		rate := money.Rate(n+1) * 1e12
		c.rates[o.ID] = rate
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: c.now})
	}
	c.step("", seen)
	return c
}

// burns is what the machines in a scope cost an hour, in the plainest way: requested, rented or idle. Those that a job
// leaves before it gets the next one do not count.
func (c *crowd) burns(scope budget.Scope, but string) (sum money.Rate) {
	for j := range c.m.Jobs() {
		if !scope.Holds(j.Terms().Owner, j.User()) {
			continue
		}
		if a := j.Asked(); a != nil {
			sum += a.Rate() * money.Rate(a.Nodes())
		}
		for _, a := range j.Attempts() {
			if a.Live() && a.Until().IsZero() && j.ID() != but {
				sum += a.Rate()
			}
		}
	}
	for _, i := range c.m.State().Waiting() {
		if idle, ok := i.Idle(); ok && scope.Holds(idle.Owner, idle.User) {
			sum += i.PresentRate()
		}
	}
	return sum
}

// on lets the next job end, or an hour pass if nothing runs until then.
func (c *crowd) on() {
	if hour := c.now.Add(time.Hour); len(c.ends) == 0 || c.ends[0].at.After(hour) {
		c.tick(time.Hour)
		return
	}
	c.next()
	c.tick(0)
}

// overRate plays drawn jobs of two teams under limits of dollars an hour, and returns the first start after which the
// machines of a scope cost more than its limit.
func overRate(t *testing.T, r *rapid.T, faults core.Faults) (wrong string) {
	c := newRated(t, time.Duration(rapid.IntRange(0, 2).Draw(r, "idle"))*time.Hour)
	c.m.Break(faults)
	limits := []budget.Limit{hourly("all", money.Rate(rapid.IntRange(1, 9).Draw(r, "all"))*1e12),
		hourly("team:a", money.Rate(rapid.IntRange(0, 5).Draw(r, "a"))*1e12)}
	c.rules(limits...)
	check := func() {
		last := c.log[len(c.log)-1]
		for _, f := range last.out.Facts {
			f, ok := f.(state.AllocationRequested)
			if !ok {
				continue
			}
			for _, l := range limits {
				j, _ := c.m.Job(f.Job)
				if sum := c.burns(l.Scope, f.Job); wrong == "" && l.Scope.Holds(j.Terms().Owner, j.User()) && sum > *l.Rate {
					wrong = fmt.Sprintf("%s costs %v an hour with %s at %v", l.Name(), sum, f.Job, f.Rate)
				}
			}
		}
	}
	launched := c.launched
	c.launched = func(job string) { check(); launched(job) }
	for range rapid.IntRange(5, 40).Draw(r, "jobs") {
		c.add(rapid.SampledFrom([]string{"a", "b"}).Draw(r, "team"), time.Duration(rapid.IntRange(1, 30).Draw(r, "work"))*
			time.Hour/10, func(t *core.Terms) {
			t.Need.CPUs = rapid.SampledFrom([]int{1, 4, 8, 16}).Draw(r, "cpus")
		})
		if rapid.Bool().Draw(r, "ends") {
			c.on()
		}
	}
	for range 100 {
		c.on()
	}
	return wrong
}

// Whatever comes, a start leaves what the machines of each scope cost an hour within its limit.
func TestRate_IsNeverExceededByAStart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if wrong := overRate(t, r, core.Faults{}); wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// The property above detects the planted fault.
func TestRate_PlantedFaultIsCaught(t *testing.T) {
	for seed := range 50 {
		if wrong := rapid.Custom(func(r *rapid.T) string { return overRate(t, r, core.Faults{Burns: true}) }).Example(seed); wrong != "" {
			return
		}
	}
	t.Error("nobody noticed that starts ignore the limit")
}

// Under $1 an hour, jobs that wait start in the order of their work. By hand: the one of 8 hours has started; 1, 2 and 4
// hours end after 9, 11 and 15 hours, in the mean 10.75 with the first. In the order of submission it were 12.5.
func TestRate_ShortJobsStartFirst(t *testing.T) {
	c := newRated(t, 0)
	c.rules(hourly("all", 1e12))
	begun := c.now
	for _, hours := range []int{8, 4, 2, 1} {
		c.add("a", time.Duration(hours)*time.Hour, nil)
	}
	sum := time.Duration(0)
	for c.next() {
		sum += c.now.Sub(begun)
	}
	if want := []string{"a-0", "a-3", "a-2", "a-1"}; !slices.Equal(c.started, want) || sum != 43*time.Hour {
		t.Errorf("started %v, in the mean after %v", c.started, sum/4)
	}
}

// A job of an hour is passed only by shorter ones that were submitted within a hundred hours: it starves behind none.
// With the planted fault it never starts.
func TestRate_StarvesNobody(t *testing.T) {
	if at, ok := passed(t, core.Faults{}); !ok || at < 20*time.Hour || at > 101*time.Hour {
		t.Errorf("it started after %v (%t)", at, ok)
	}
	if at, ok := passed(t, core.Faults{Passes: true}); ok {
		t.Errorf("nobody noticed that shorter jobs pass it for ever: it started after %v", at)
	}
}

// passed returns when a job of an hour starts under $1 an hour, while more jobs of half an hour come than can run.
func passed(t *testing.T, faults core.Faults) (at time.Duration, ok bool) {
	c := newRated(t, 0)
	c.m.Break(faults)
	c.rules(hourly("all", 1e12))
	c.add("a", 30*time.Minute, nil)
	long := c.add("a", time.Hour, nil)
	begun := c.now
	for range 1000 {
		c.add("a", 30*time.Minute, nil)
		c.add("a", 30*time.Minute, nil)
		c.next()
		if slices.Contains(c.started, long) {
			return c.now.Sub(begun), true
		}
	}
	return 0, false
}

// A gang counts with all its machines.
func TestRate_CountsAllMachinesOfAGang(t *testing.T) {
	c := newRated(t, 0)
	c.rules(hourly("all", 2e12))
	c.add("a", time.Hour, nil)
	c.add("a", time.Hour, func(t *core.Terms) { t.Nodes = 2 })
	c.want("Rw")
	c.rules(hourly("all", 3e12))
	j, _ := c.m.Job("a-1")
	if j.Asked() == nil && j.Attempt() == nil {
		t.Errorf("the gang is %s under $3 an hour", j.State())
	}
}

// A job whose cheapest machine exceeds the limit holds back no other, and says why it waits. It starts once the limit
// allows it, and so does one that waits for room.
func TestRate_TooDearJobHoldsBackNobody(t *testing.T) {
	c := newRated(t, 0)
	c.rules(hourly("team:a", 2e12))
	dear := c.add("a", time.Hour, func(t *core.Terms) { t.Need.CPUs = 16 })
	c.add("a", time.Hour, nil)
	c.add("a", time.Hour, nil)
	waits := c.add("a", time.Hour, nil)
	c.add("b", time.Hour, nil)
	c.want("qRRwR")
	j, _ := c.m.Job(waits)
	if limit, detail, ok := c.m.Waits(j); !ok || limit != "team:a/hour" || detail != "team:a/hour lets machines cost $2 an hour, "+
		"$2 of that is in use, and the cheapest for the job does not fit" {
		t.Errorf("%q %q", limit, detail)
	}
	j, _ = c.m.Job(dear)
	if !slices.ContainsFunc(j.Last().Rejected, func(x plan.Rejection) bool { return x.Why == plan.OverQuota }) {
		t.Errorf("%+v", j.Last())
	}
	c.rules(hourly("team:a", 6e12))
	c.want("RRRRR")
}
