package plan

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/egress"
	"scrimp/internal/test/lane"
)

// plainRanking is the slow, plain twin of room.rank: it checks every offer of the market and sorts them all,
// whatever the class knows.
func plainRanking(job *Job, c *Class) ranking {
	need := job.Need
	r := ranking{}
	var all []Option
	for _, l := range c.listings.all {
		held := l.Offer.ID == job.Held && (!l.prepaid() || !job.Unreserved)
		ofClass, whyNot, does := c.need.fit(nil, l)
		if !does && !held {
			(*tally)(&r.unlisted).add(whyNot, 1)
			r.others = append(r.others, other(l, whyNot))
		}
		if !held && (!does || l.prepaid() && job.Unreserved) {
			continue
		}
		k := *l
		l = &k
		if held && !l.Quote.Priced {
			l.Quote.Rate, l.Quote.Priced = job.HeldRate, true
		}
		o := Option{
			Listing: l,
			held:    held,
			spot:    l.Offer.Capacity == market.Spot,
			prepaid: l.Offer.Reserved.Count > 0,
			way:     ofClass,
		}
		if o.prepaid {
			given := job.reservation(l.Offer.ID)
			o.promised = given.Promised
			if given.InUse {
				l.Quote.Available = false
			}
		}
		way, why, ok := need.fit(job.Open, l)
		if !ok && held && why == LaterRung {
			_, _, ok = need.fit(nil, l)
		}
		switch {
		case held:
			o.way = max(0, 1+slices.IndexFunc(need.Variants, func(v Variant) bool { return v.Name == job.Variant }))
		case ok:
			o.way = way
		}
		if !ok {
			o.why = cmp.Or(why, NoOffer)
		} else if !held && (job.GPULimited && l.Offer.Accelerators > job.GPURoom ||
			job.RateLimited && l.Quote.Rate > job.RateRoom) {
			o.why = OverQuota
		}
		o.units = need.Units(o.way, l, false)
		o.speed = need.speed(o.way, l)
		if o.why == "" && !held && shortLived(job, &o) {
			o.why = ShortLived
		}
		o.perHourOfWork = l.perWork(o.speed)
		o.reads = readPlainly(&need, l)
		if !held && !o.reads.IsZero() {
			over := 4 * time.Hour
			if job.Progress.Known {
				over = max(time.Minute, job.Progress.Left)
			}
			o.readPart = o.reads.Float() / over.Hours()
			o.perHourOfWork += o.readPart
		}
		o.payable = o.why == "" && (held || !o.spot || job.Rule != policy.OnDemand)
		all = append(all, o)
	}
	byPrice := func(o Option) bool { return o.why == Unpriced || o.why == OverPrice }
	slices.SortStableFunc(r.others, func(a, b Option) int { return compareBool(byPrice(b), byPrice(a)) })
	slices.SortFunc(all, func(a, b Option) int { return job.compare(&a, &b) })
	r.options = all
	r.budget = checkBudget(job, &r)
	least := max(job.Progress.Restart+job.Grace, time.Minute)
	for i := range r.options {
		o := &r.options[i]
		if o.why != "" {
			r.later = r.later || o.why == LaterRung || o.why == OverQuota
			continue
		}
		if !o.held && endsSoon(job, o) {
			o.why, r.later = EndsSoon, true
			continue
		}
		r.fits++
		switch {
		case !o.held && job.Limited && !job.DeadlineFirst && o.Quote.Rate.Until(max(least, o.Offer.Billing.Minimum)).Cmp(job.Left) > 0:
			o.why = OverBudget
			continue
		case r.budget.over(job, o, r.cheapest):
			o.why, r.budget.kept = OverBudget, true
			continue
		}
		r.affordable++
		if r.onDemandLate = r.onDemand != nil && late(job, r.onDemand); o.spot && !o.held && r.undercut(job, o) {
			o.why = CostsMore
			continue
		}
		r.sold = r.sold || o.spot
		if o.spot {
			r.spots = append(r.spots, o)
		}
		switch {
		case o.promised:
			o.why = Promised
			continue
		case o.held:
		case o.Quote.Untried:
			o.why, r.untried = Untried, true
			continue
		case o.Backoff.After(job.Progress.Now):
			o.why = CoolingOff
			continue
		case !o.Quote.Available:
			o.why = Unavailable
			if o.spot && r.asleep == nil {
				r.asleep = o
			}
			continue
		}
		r.usable = append(r.usable, o)
		if o.held {
			r.held = o
		}
		if o.spot && (r.spot == nil || o.held) {
			r.spot = o
		}
		if !o.spot && (r.onDemand == nil || late(job, r.onDemand) && perHour(r.onDemand) < perHour(o) ||
			!late(job, r.onDemand) && !late(job, o) && job.nearer(o, r.onDemand)) {
			r.onDemand = o
		}
	}
	return r
}

// readPlainly adds up what one machine of l pays for reading the job's data: bytes by 1e9, times the only fare that the
// drawn jobs have; 0 where that is unknown.
func readPlainly(n *Need, l *Listing) (sum money.Amount) {
	picos := new(big.Rat)
	for _, r := range n.Reads {
		switch {
		case l.Offer.Region == r.Region:
		case r.Out == nil:
			return money.Amount{}
		default:
			picos.Add(picos, new(big.Rat).Mul(big.NewRat(r.Bytes, 1e9), big.NewRat(int64(*r.Out), 1)))
		}
	}
	if !picos.IsInt() {
		panic("the drawn sizes are whole gigabytes")
	}
	sum, _ = money.FromBig(picos.Num())
	return sum
}

// decidePlainly is Decide with the twin.
func decidePlainly(m *Planner, job Job, c *Class) Decision {
	r := plainRanking(&job, c)
	v := r.view(&job)
	if job.Open != nil && v.Guard(v.Working()) {
		job.Open = nil
		r = plainRanking(&job, c)
		v = r.view(&job)
	}
	return m.decide(&job, &r, &v)
}

// drawListing draws an offer of a market in which many offers cost the same.
func drawListing(rng *rand.Rand, id string) *Listing {
	region := string(rune('r' + rng.IntN(3)))
	o := market.Offer{
		ID: market.OfferID(id), Zone: region + string(rune('a'+rng.IntN(3))), Region: region, Capacity: market.Spot,
		CPUs: 1 + rng.IntN(4), Speed: float64(rng.IntN(4)) / 2,
	}
	switch rng.IntN(8) {
	case 0, 1, 2:
		o.Capacity = market.OnDemand
	case 3:
		if rng.IntN(3) == 0 {
			o.Capacity, o.Reserved = market.Reserved, market.Reservation{
				Count: 1,
				Until: now.Add(time.Duration(rng.IntN(30)) * time.Hour),
			}
		}
	}
	if rng.IntN(3) == 0 {
		o.Accelerator, o.Accelerators = "H100", 1+rng.IntN(4)
	}
	if rng.IntN(8) == 0 {
		o.MaxLifetime = time.Duration(1+rng.IntN(12)) * time.Hour
	}
	l := &Listing{Offer: o}
	drawQuote(rng, l)
	return l
}

func drawQuote(rng *rand.Rand, l *Listing) {
	l.Quote = market.Quote{
		Offer:     l.Offer.ID,
		Rate:      money.Rate(rng.IntN(16)) * 25e10,
		Priced:    rng.IntN(9) > 0,
		Available: rng.IntN(3) > 0,
	}
	l.Quote.Untried = l.Offer.Capacity == market.Spot && rng.IntN(12) == 0
	if l.Backoff = (time.Time{}); rng.IntN(8) == 0 {
		l.Backoff = now.Add(time.Duration(rng.IntN(200)-60) * time.Second)
	}
	if l.Low = (Low{}); rng.IntN(4) == 0 {
		l.Low = Low{Rate: l.Quote.Rate / 2, Known: true}
	}
	l.Watch = onezone.Watch{
		Known: rng.IntN(2) == 0,
		Whole: true,
		Up:    l.Quote.Available,
		Since: now.Add(-time.Duration(rng.IntN(50)) * time.Hour),
	}
}

// drawNeed draws the requirements of a class of jobs.
func drawNeed(rng *rand.Rand) Need {
	n := Need{Requirements: Requirements{CPUs: rng.IntN(4)}, Critical: rng.IntN(12) == 0}
	if n.CPUs > 0 && rng.IntN(4) == 0 {
		n.MaxCPUs = n.CPUs + rng.IntN(3)
		n.Parallel = float64(rng.IntN(5)) / 4
	}
	if rng.IntN(4) == 0 {
		n.MaxRate = money.Rate(1+rng.IntN(12)) * 25e10
	}
	if rng.IntN(4) == 0 {
		n.Accelerator, n.Accelerators = "h100", rng.IntN(3)
	}
	if rng.IntN(8) == 0 {
		n.Zones = []string{"ra", "s"}
	}
	if rng.IntN(12) == 0 {
		n.Capacity = []market.Capacity{market.OnDemand}
	}
	if rng.IntN(3) == 0 {
		n.Reads = []Read{drawRead(rng), drawRead(rng)}
	}
	for range max(0, rng.IntN(5)-2) {
		v := Variant{
			Name:         fmt.Sprint("v", len(n.Variants)),
			Throughput:   float64(rng.IntN(5)) / 2,
			Requirements: Requirements{CPUs: 1 + rng.IntN(4)},
		}
		if rng.IntN(3) == 0 {
			v.Accelerator = "H100"
		}
		n.Variants = append(n.Variants, v)
	}
	return n
}

func drawRead(rng *rand.Rand) Read {
	r := Read{Origin: egress.Origin{Region: string(rune('r' + rng.IntN(3)))}, Bytes: 1e9 * (1 + rng.Int64N(300))}
	if rng.IntN(8) > 0 {
		r.Out = new(money.Rate(rng.IntN(4)) * 1e10)
	}
	return r
}

func drawLadder(rng *rand.Rand, n *Need) (open []bool) {
	for i := range 1 + rng.IntN(3) {
		r := Rung{For: time.Hour}
		if rng.IntN(2) == 0 {
			r.Capacity = []market.Capacity{market.Spot}
		}
		if rng.IntN(3) == 0 {
			r.Zones = []string{"r", "sa"}
		}
		if rng.IntN(3) == 0 {
			r.MaxRate = money.Rate(1+rng.IntN(12)) * 25e10
		}
		if len(n.Variants) > 0 && rng.IntN(2) == 0 {
			r.Use = n.Variants[rng.IntN(len(n.Variants))].Name
		}
		n.Ladder, open = append(n.Ladder, r), append(open, i == 0 || rng.IntN(2) == 0)
	}
	return open
}

// drawJob draws a job of a class. With tables, the job may need tables.
func drawJob(rng *rand.Rand, need Need, all []*Listing, tables bool) Job {
	minutes := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * time.Minute }
	job := Job{
		ID: "j", Need: need, Rule: policy.Rules[rng.IntN(len(policy.Rules))],
		Progress: policy.Progress{
			Now: now, Began: now.Add(-time.Hour), Left: minutes(600), Known: rng.IntN(5) > 0, Done: minutes(180),
			Restart: minutes(12), Detect: time.Minute, Reserve: minutes(10), Margin: minutes(30),
		},
		Limited: rng.IntN(2) == 0, DeadlineFirst: rng.IntN(3) == 0, Left: money.Picos(rng.Int64N(3e13)), Grace: minutes(3),
		Rough: rng.IntN(4) == 0, Sooner: rng.IntN(5) == 0, Unsaving: rng.IntN(4) == 0, UnsavedLosses: rng.IntN(5),
		Probes: rng.IntN(7), Probed: rng.IntN(2) == 0, GPULimited: rng.IntN(4) == 0, GPURoom: rng.IntN(4),
		RateLimited: rng.IntN(4) == 0, RateRoom: money.Rate(rng.Int64N(4e12)),
		Unreserved: rng.IntN(9) == 0,
	}
	if !tables && job.Rule == policy.Default {
		job.Rule = policy.UniformProgress
	}
	if rng.IntN(6) > 0 {
		job.Progress.Deadline = now.Add(minutes(20 * 60))
	}
	if rng.IntN(5) == 0 {
		job.Need.Critical = true
	}
	if rng.IntN(3) == 0 {
		job.Open = drawLadder(rng, &job.Need)
	}
	if rng.IntN(2) == 0 {
		job.CheckpointRegion, job.Transfer = string(rune('r'+rng.IntN(3))), minutes(20)
		job.EgressCost = money.Picos(rng.Int64N(1e12))
	}
	if held := all[rng.IntN(len(all))]; rng.IntN(2) == 0 {
		job.Held, job.HeldRate = held.Offer.ID, money.Rate(rng.IntN(16))*25e10
		job.Unsaved, job.Warming = minutes(60), minutes(5)
		if n := len(need.Variants); n > 0 && rng.IntN(2) == 0 {
			job.Variant = need.Variants[rng.IntN(n)].Name
		}
	}
	for _, l := range all {
		if l.prepaid() && rng.IntN(2) == 0 {
			held := l.Offer.ID == job.Held
			job.Reserved = append(
				job.Reserved,
				Reservation{Offer: l.Offer.ID, InUse: !held && rng.IntN(2) == 0, Promised: rng.IntN(2) == 0},
			)
		}
	}
	return job
}

// A class that follows its market, with a ranking in one pass, decides like a full sort of the market.
func TestDecide_AgreesWithPlainTwin(t *testing.T) {
	one, twin := NewPlanner(), NewPlanner()
	taken, waits, counted, tables := 0, 0, 0, 0
	for seed := range uint64(lane.Pick(200, 5_000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := &Listings{}
		add := func() { s.Add(drawListing(rng, fmt.Sprintf("%03d", 1000-len(s.all)*7%1000))) }
		for range 1 + rng.IntN(30) {
			add()
		}
		var classes []*Class
		for range 3 {
			classes = append(classes, NewClass(s, drawNeed(rng)))
		}
		for step := range 12 {
			for range rng.IntN(4) * rng.IntN(4) {
				l := s.all[rng.IntN(len(s.all))]
				if rng.IntN(10) == 0 {
					id := l.Offer.ID
					fresh := drawListing(rng, string(id))
					l.Offer = fresh.Offer
				}
				drawQuote(rng, l)
				s.Changed(l)
			}
			if rng.IntN(3) == 0 {
				add()
			}
			c := classes[rng.IntN(len(classes))]
			job := drawJob(rng, c.need, s.all, seed%8 == 0)
			want := decidePlainly(twin, job, c)
			got := one.Decide(job, c)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: it decides otherwise\n got %+v\nwant %+v", seed, step, got, want)
			}
			switch {
			case got.Take != "":
				taken++
			case got.Probe == "":
				waits++
			}
			if len(got.Counts) > 0 {
				counted++
			}
			if got.Expect != nil {
				tables++
			}
		}
	}
	few := lane.Pick(300, 1000)
	if taken < few || waits < few || counted < few || tables < lane.Pick(2, 10) {
		t.Errorf(
			"%d taken, %d wait, %d counted, %d by what is expected: too few to tell",
			taken,
			waits,
			counted,
			tables,
		)
	}
}
