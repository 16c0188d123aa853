package core_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

var liveJobs = flag.Int("live", 10_000, "how many live jobs are decided again")

// BenchmarkLiveJobsDecidedAgain measures a tick in which a moved price makes the core decide all of 10,000 live
// jobs again: jobs of any length and deadline, half of them on spot, the others waiting or on on-demand, in one
// zone and in nine. It must take less than the minute between ticks on one core.
func BenchmarkLiveJobsDecidedAgain(b *testing.B) {
	jobs := *liveJobs
	for _, zones := range []int{1, 9} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 0x11fe))
			m := core.New()
			now := start
			step := func(body core.Body) core.Outcome {
				return m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "default", Body: body})
			}
			cfg := core.DefaultConfig()
			cfg.MaxRunning, cfg.Detect = jobs, time.Minute
			step(core.Configured{Config: cfg})
			seen := core.MarketSeen{}
			for z := range zones {
				for _, c := range []market.Capacity{market.Spot, market.OnDemand} {
					o := market.Offer{Provider: "p", Region: fmt.Sprint("r", z/3), Zone: fmt.Sprint("z", z), Machine: "m", Capacity: c, CPUs: 4, Memory: size.GiB, Speed: 1, Currency: money.USD}
					o.ID = market.ID(o)
					q := market.Quote{Offer: o.ID, Rate: 3e12, Priced: true, Available: true, At: now}
					if c == market.Spot {
						q.Rate = money.Rate(1e12 + int64(z)*2e10)
					}
					seen.Offers, seen.Quotes = append(seen.Offers, o), append(seen.Quotes, q)
				}
			}
			step(seen)
			for i := range jobs {
				work := time.Duration(2+rng.IntN(70)) * time.Hour
				t := core.Terms{
					Currency: money.USD, Priority: 1, Steps: int64(work.Minutes()), Work: work, Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Promise: 0.99,
					Deadline: now.Add(work + time.Duration(rng.Int64N(int64(work))) + time.Hour),
				}
				id := fmt.Sprintf("job%05d", i)
				live := step(core.JobSubmitted{Job: id, Terms: t})
				for _, a := range live.Actions {
					if l, ok := a.(core.Launch); ok {
						step(core.LaunchDone{Launch: l.Allocation, Instance: "i-" + l.Allocation, Offer: l.Offer, Rate: 1e12, From: now})
						step(core.AttemptStarted{Attempt: l.Allocation, Message: 1})
					}
				}
			}
			decided, spent := 0, time.Duration(0)
			for b.Loop() {
				now = now.Add(time.Minute)
				for i := range seen.Quotes {
					if q := &seen.Quotes[i]; q.Rate < 3e12 {
						q.Rate, q.At = q.Rate*money.Rate(97+rng.IntN(7))/100, now
					}
				}
				begun := processor()
				out := step(core.MarketSeen{Quotes: seen.Quotes})
				decided += out.Decided
				for !out.Wake.IsZero() && !out.Wake.After(now) { // the review continues in short steps
					out = step(core.Tick{})
					decided += out.Decided
				}
				spent += processor() - begun
			}
			if decided < jobs*b.N*9/10 {
				b.Fatalf("%d decisions in %d ticks of %d live jobs", decided, b.N, jobs)
			}
			b.ReportMetric(spent.Seconds()/float64(b.N), "processor-s/tick")
			b.ReportMetric(float64(spent.Microseconds())/float64(decided), "processor-µs/decision")
		})
	}
}

// processor returns the processor time that this goroutine has used: neither other programs nor the runtime's own work
// in the background count. It locks the goroutine to its thread. (Getrusage counts in ticks of 4 ms.)
func processor() time.Duration {
	runtime.LockOSThread()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
