package sim

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// The cost of a job on a recorded market equals a count by hand.
func TestPlay_CostEqualsTrace(t *testing.T) {
	offer := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1, Currency: money.USD, Notice: 2 * time.Minute}
	offer.ID = market.ID(offer)
	firm := offer
	firm.Capacity, firm.Notice = market.OnDemand, 0
	firm.ID = market.ID(firm)
	const dollar = money.Rate(1e12)
	trace := market.Trace{Name: "by hand", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{
		{Offer: offer, Price: []market.Price{{Rate: dollar}, {At: 90 * time.Minute, Rate: 2 * dollar}}, Available: []market.Span{{To: time.Hour, Notice: 2 * time.Minute}, {From: 80 * time.Minute, To: 10 * time.Hour}}},
		{Offer: firm, Price: []market.Price{{Rate: 4 * dollar}}},
	}}
	p := Playback{
		Terms:   core.Terms{Name: "j", Currency: money.USD, Steps: 120, Work: 2 * time.Hour, Restart: time.Minute, Grace: time.Minute, Saves: true, Priority: 1},
		Restart: time.Minute, Save: 10 * time.Second, Trace: trace, Opened: epoch, Policy: policy.Greedy,
	}
	got := Play(p)
	// An hour of the first machine, which is left two minutes early minus the save, and terminated. Then the second
	// machine from 80 min on; its price doubles after ten minutes.
	if got.State != core.Succeeded || got.Interruptions != 1 || !got.InTime {
		t.Fatalf("%+v", got)
	}
	if cost := got.Cost.Float(); cost < 2.9 || cost > 3.2 {
		t.Errorf("it cost %v", cost)
	}
	if got.Finish < 2*time.Hour+20*time.Minute || got.Finish > 2*time.Hour+35*time.Minute {
		t.Errorf("it took %v", got.Finish)
	}
	if got.LostTime > 0 {
		t.Errorf("%v of work were lost in spite of the notice", got.LostTime)
	}
	if again := Play(p); again.Cost != got.Cost || again.Finish != got.Finish {
		t.Errorf("played again it costs %v and takes %v", again.Cost, again.Finish)
	}
	// A later submission acts as if the trace began there. Without notice, work is lost.
	late := p
	late.From = 30 * time.Minute
	late.Trace.Lines = append([]market.TraceLine(nil), trace.Lines...)
	late.Trace.Lines[0].Available = []market.Span{{To: time.Hour}, {From: 80 * time.Minute, To: 10 * time.Hour}}
	if got := Play(late); got.LostTime <= 0 || got.Attempts[0].Until().Sub(epoch) < time.Hour {
		t.Errorf("lost %v, the first machine until %v", got.LostTime, got.Attempts[0].Until())
	}
	// With nothing for sale, the job never ends and costs nothing.
	none := p
	none.Trace.Lines = []market.TraceLine{{Offer: offer, Price: []market.Price{{Rate: dollar}}, Available: []market.Span{}}}
	if got := Play(none); got.State != core.Queued || !got.Cost.IsZero() || got.InTime {
		t.Errorf("%+v", got)
	}
}

// The maximum lifetime of a recorded offer is known in advance: the job leaves in time and loses no work, although
// there is no notice.
func TestPlay_LeavesBeforeMaximumLifetime(t *testing.T) {
	offer := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1, Currency: money.USD, MaxLifetime: 2 * time.Hour}
	offer.ID = market.ID(offer)
	p := Playback{
		Terms:   core.Terms{Name: "j", Currency: money.USD, Steps: 300, Work: 5 * time.Hour, Restart: time.Minute, Grace: time.Minute, Saves: true, Priority: 1},
		Restart: time.Minute, Save: 10 * time.Second, Opened: epoch,
		Trace: market.Trace{Name: "short", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{{Offer: offer, Price: []market.Price{{Rate: 1e12}}}}},
	}
	got := Play(p)
	if got.State != core.Succeeded || len(got.Attempts) != 3 || got.LostTime != 0 || got.Interruptions != 0 {
		t.Errorf("%s after %d machines and %d interruptions, %v lost: want 3, 0 and none", got.State, len(got.Attempts), got.Interruptions, got.LostTime)
	}
	for _, a := range got.Attempts {
		if ran := a.Until().Sub(a.From()); ran > offer.MaxLifetime {
			t.Errorf("%s was held for %v", a.ID(), ran)
		}
	}
}

// A machine of three times the speed does six hours of work in two. The job chooses the cheapest hour of work, not the
// cheapest hour of a machine.
func TestPlay_FasterMachineFinishesSooner(t *testing.T) {
	var lines []market.TraceLine
	for _, m := range []struct {
		name  string
		speed float64
		rate  money.Rate
	}{{"slow", 1, 1e12}, {"fast", 3, 15e11}} {
		offer := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: m.name, Capacity: market.OnDemand, CPUs: 1, Memory: size.GiB, Speed: m.speed, Currency: money.USD}
		offer.ID = market.ID(offer)
		lines = append(lines, market.TraceLine{Offer: offer, Price: []market.Price{{Rate: m.rate}}})
	}
	p := Playback{
		Terms:   core.Terms{Name: "j", Currency: money.USD, Steps: 360, Work: 6 * time.Hour, Restart: time.Minute, Grace: time.Minute, Saves: true, Priority: 1},
		Restart: time.Minute, Save: time.Second, Opened: epoch,
		Trace: market.Trace{Name: "two speeds", Currency: money.USD, Speed: 1, Lines: lines},
	}
	got := Play(p)
	if got.State != core.Succeeded || got.Finish < 2*time.Hour || got.Finish > 2*time.Hour+10*time.Minute {
		t.Errorf("%s after %v: want two hours and a start", got.State, got.Finish)
	}
	if cost := got.Cost.Float(); cost < 3 || cost > 3.3 {
		t.Errorf("it cost %v: want two hours at 1.50", cost)
	}
}

// Notices are in wall time. On a fast market a notice is long in market time, and the save fits; the same notice at
// speed 1 is too short.
func TestPlay_NoticeIsWallTimeOnFastMarket(t *testing.T) {
	offer := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1, Currency: money.USD, Notice: 4 * time.Second}
	offer.ID = market.ID(offer)
	lost := map[float64]time.Duration{}
	for _, speed := range []float64{1, 60} {
		got := Play(Playback{
			Terms:   core.Terms{Name: "j", Currency: money.USD, Steps: 120, Work: 2 * time.Hour, Restart: time.Minute, Grace: time.Minute, Saves: true, Priority: 1},
			Restart: time.Minute, Save: time.Minute, Opened: epoch,
			Trace: market.Trace{Name: "fast", Currency: money.USD, Speed: speed, Lines: []market.TraceLine{{
				Offer: offer, Price: []market.Price{{Rate: 1e12}}, Available: []market.Span{{To: 40 * time.Minute, Notice: 4 * time.Second}, {From: time.Hour, To: 9 * time.Hour, Notice: 4 * time.Second}},
			}}},
		})
		if got.State != core.Succeeded || got.Interruptions != 1 {
			t.Errorf("speed %v: %s, %d taken", speed, got.State, got.Interruptions)
		}
		lost[speed] = got.LostTime
	}
	if lost[1] == 0 || lost[60] != 0 {
		t.Errorf("%v lost after four seconds of notice, %v after four minutes", lost[1], lost[60])
	}
}

// A checkpoint transfer to another region makes a restart longer and costs the price in the job's terms. Within a
// region it does neither. The cost of a move keeps a job away from a slightly cheaper region.
func TestPlay_MoveToAnotherRegionTakesTimeAndMoney(t *testing.T) {
	const dollar = money.Rate(1e12)
	lines := func(region string, rate money.Rate) (list []market.TraceLine) {
		for i, zone := range []string{"a", "b"} {
			o := market.Offer{Provider: "local", Region: []string{"home", region}[i], Zone: zone, Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1, Currency: money.USD, Notice: 2 * time.Minute}
			o.ID = market.ID(o)
			l := market.TraceLine{Offer: o, Price: []market.Price{{Rate: rate}}}
			if i == 0 {
				l.Price, l.Available = []market.Price{{Rate: dollar}}, []market.Span{{To: time.Hour, Notice: 2 * time.Minute}, {From: 3 * time.Hour, To: 90 * time.Hour}}
			}
			list = append(list, l)
		}
		return list
	}
	play := func(region string, rate money.Rate, move time.Duration, cost money.Amount) Played {
		got := Play(Playback{
			Terms:   core.Terms{Name: "j", Currency: money.USD, Steps: 240, Work: 4 * time.Hour, Restart: time.Minute, Grace: time.Minute, Saves: true, Priority: 1, Transfer: move, Carry: cost},
			Restart: time.Minute, Save: 10 * time.Second, Opened: epoch, Policy: policy.Greedy,
			Trace: market.Trace{Name: "regions", Currency: money.USD, Speed: 1, Lines: lines(region, rate)},
		})
		if got.State != core.Succeeded {
			t.Fatalf("%s: %s", region, got.State)
		}
		return got
	}
	near, far := play("home", dollar*11/10, 20*time.Minute, money.Picos(3e12)), play("away", dollar*11/10, 20*time.Minute, money.Picos(3e12))
	if near.Moves != 0 || far.Moves != 1 {
		t.Fatalf("%d moves within a region, %d to another", near.Moves, far.Moves)
	}
	if d := far.Finish - near.Finish; d < 19*time.Minute || d > 21*time.Minute {
		t.Errorf("a move of 20 minutes makes it %v later", d)
	}
	if d := far.Cost.Float() - near.Cost.Float(); d < 3.3 || d > 3.5 { // plus 20 minutes of the machine
		t.Errorf("a move of 3 dollars and 20 minutes makes it %v dearer", d)
	}
	// Half an hour of transfer exceeds the boot limit of a machine.
	if long := play("away", dollar*11/10, 30*time.Minute, money.Amount{}); len(long.Attempts) != 2 {
		t.Errorf("the machine to which the checkpoint is taken was given up: %d attempts", len(long.Attempts))
	}
}
