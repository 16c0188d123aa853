package recommend

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Names of recommendations that are compared by runs of the jobs that they concern.
const (
	SmallerMachine = "smaller machine"
	MixedPrecision = "mixed precision"
)

const (
	// leastSpot is the useful spot time that a comparison of spot with on-demand needs, and surely that for which it
	// is sure.
	leastSpot = time.Hour
	surely    = 10 * time.Hour
	// windowHours is the length of the cheapest part of a day, and leastDays the days of prices that it needs.
	windowHours = 8
	leastDays   = 7
)

// sumOf adds up the costs that f selects.
func (in *Input) sumOf(f func(*Cost) bool) (sum money.Amount, long time.Duration) {
	for i := range in.Costs {
		if c := &in.Costs[i]; f(c) {
			sum, long = sum.Add(c.Amount), long+c.Time
		}
	}
	return sum, long
}

// idleStop ends machines that wait for a job. Each machine that waited may have spared a start, so a start of average
// cost is taken off for each.
func idleStop(in *Input) *Recommendation {
	waits := func(c *Cost) bool { return c.Job == "" && c.Use == Idle && c.Time > 0 && !c.Reserved && !c.Due }
	cost, long := in.sumOf(waits)
	if cost.Sign() <= 0 {
		return nil
	}
	machines, attempts := map[string]bool{}, map[string]bool{}
	starts, _ := in.sumOf(func(c *Cost) bool {
		if waits(c) {
			machines[c.Instance] = true
		}
		if c.Job != "" {
			attempts[c.Job+"\x00"+c.Instance] = true
		}
		return c.Job != "" && c.Use == StartUp
	})
	share := big.NewRat(1, 1)
	if len(attempts) > 0 {
		again := starts.Over(len(attempts)).Times(len(machines))
		if share = new(big.Rat).SetFrac(cost.Sub(again).Big(), cost.Big()); share.Sign() <= 0 {
			return nil
		}
	}
	return &Recommendation{Name: "idle stop", Method: Counted, Confidence: High, Effort: Little, Risk: Little,
		Evidence: fmt.Sprintf("%s waited %.1f h for a job and cost %s; a start for each of them is taken off",
			draw.Count(len(machines), "machine"), long.Hours(), money.Short(cost, in.Currency)),
		Command: "set timing: {idle: 0s} of the engine, or scrimp waste apply for a machine that waits",
		share:   shareOf(waits, share)}
}

func shareOf(of func(*Cost) bool, share *big.Rat) func(*Cost) *big.Rat {
	return func(c *Cost) *big.Rat {
		if of(c) {
			return share
		}
		return nil
	}
}

// smaller moves oversized jobs to the smaller machine that the waste report names.
func smaller(in *Input) *Recommendation {
	if len(in.Oversized) == 0 {
		return nil
	}
	shares := map[[3]string]*big.Rat{}
	for _, o := range in.Oversized {
		if o.Cost.Sign() > 0 && o.Waste.Sign() > 0 {
			shares[[3]string{o.Series, o.SKU, o.Capacity}] = new(big.Rat).SetFrac(o.Waste.Big(), o.Cost.Big())
		}
	}
	return &Recommendation{Name: SmallerMachine, Method: Compared, Confidence: Medium, Effort: Little, Risk: Some,
		Evidence: fmt.Sprintf("%d recurring jobs used less than half of their machine", len(in.Oversized)),
		Command:  "scrimp waste, which names the machine for each job",
		share: func(c *Cost) *big.Rat {
			if c.Job == "" || c.Series == "" || c.Time <= 0 {
				return nil
			}
			return shares[[3]string{c.Series, c.SKU, c.Capacity}]
		}}
}

// precision trains in mixed precision what computes in 32 bits, by the saving that the estimate of each job expects.
func precision(in *Input) *Recommendation {
	jobs := map[string]bool{}
	cost, _ := in.sumOf(func(c *Cost) bool {
		mine := c.Time > 0 && in.Full32[c.Job] > 0
		jobs[c.Job] = jobs[c.Job] || mine
		return mine
	})
	if cost.Sign() <= 0 {
		return nil
	}
	maps.DeleteFunc(jobs, func(_ string, mine bool) bool { return !mine })
	return &Recommendation{Name: MixedPrecision, Method: Estimated, Confidence: Medium, Effort: Little, Risk: Some,
		Evidence: fmt.Sprintf("%s cost %s and computed in 32 bits, as model.precision in the job file says",
			draw.Count(len(jobs), "job"), money.Short(cost, in.Currency)),
		Command: "scrimp ab job.yaml --set env.PRECISION=bf16 tries it in a program that reads PRECISION",
		share: func(c *Cost) *big.Rat {
			if c.Time <= 0 {
				return nil
			}
			return ratOf(in.Full32[c.Job])
		}}
}

// SeriesOf returns the recurring jobs that a recommendation concerns, if it is compared by their runs.
func (in *Input) SeriesOf(name string) (list []string) {
	switch name {
	case SmallerMachine:
		for _, o := range in.Oversized {
			list = append(list, o.Series)
		}
	case MixedPrecision:
		for i := range in.Costs {
			if c := &in.Costs[i]; in.Full32[c.Job] > 0 {
				list = append(list, c.Series)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// spotShare runs on spot what ran on demand and resumes from checkpoints. The simulation of each job says what spot
// saves; for a job that was not simulated, the team's own spot time says what a dollar of useful work at the on-demand
// price costs there, lost work and starts included.
func spotShare(in *Input) *Recommendation {
	may := func(c *Cost) bool { return c.Capacity == OnDemand && c.Job != "" && in.Jobs[c.Job].Saves && c.Time > 0 }
	cost, _ := in.sumOf(may)
	if cost.Sign() <= 0 {
		return nil
	}
	l := &Recommendation{Name: "spot share", Effort: Little, Risk: Some,
		Command: "set resources.capacity: [spot] in the job file; scrimp plan job.yaml says what it costs"}
	ratio, long := in.perUseful(Spot)
	base, _ := in.perUseful(OnDemand)
	past := long >= leastSpot && ratio != nil && base != nil && base.Sign() > 0
	played, _ := in.sumOf(func(c *Cost) bool { _, is := in.OnSpot[c.Job]; return is && may(c) })
	what := fmt.Sprintf("%s ran on demand in jobs that resume", money.Short(cost, in.Currency))
	if !past && played.Sign() <= 0 {
		l.Confidence = Low
		l.Evidence = what + "; less than 1 h ran on spot, and none of these jobs could be simulated, so the saving is unknown"
		return l
	}
	l.Confidence, l.Method = Medium, Compared
	if past && long >= surely {
		l.Confidence = High
	}
	share := new(big.Rat)
	if past {
		share.Sub(big.NewRat(1, 1), new(big.Rat).Quo(ratio, base))
	}
	if played.Sign() > 0 {
		l.Method = Simulated
		what += fmt.Sprintf("; %s of that is of %s, simulated on demand and on spot on the market as it is",
			money.Short(played, in.Currency), draw.Count(len(in.OnSpot), "job"))
	}
	if past {
		at, _ := new(big.Rat).Quo(ratio, base).Float64()
		what += fmt.Sprintf("; in %.1f h on spot the same work cost %.0f %% of that, lost work and starts included",
			long.Hours(), 100*at)
	}
	l.Evidence = what
	l.share = func(c *Cost) *big.Rat {
		if !may(c) {
			return nil
		}
		if saves, is := in.OnSpot[c.Job]; is {
			return ratOf(saves)
		}
		return share
	}
	return l
}

// perUseful returns what a unit of useful time at the on-demand price cost in all on the capacity, and how long the
// useful time was; nil: unknown.
func (in *Input) perUseful(capacity string) (ratio *big.Rat, long time.Duration) {
	all, _ := in.sumOf(func(c *Cost) bool { return c.Capacity == capacity && c.Job != "" && c.Time > 0 })
	list := money.Amount{}
	for i := range in.Costs {
		c := &in.Costs[i]
		if c.Capacity == capacity && c.Job != "" && c.Use == Useful && c.Time > 0 && c.Listed {
			list, long = list.Add(c.List), long+c.Time
		}
	}
	if list.Sign() <= 0 || all.Sign() < 0 {
		return nil, long
	}
	return new(big.Rat).SetFrac(all.Big(), list.Big()), long
}

const (
	// leastPlayed is the least share that a simulation of two intervals tells from chance.
	leastPlayed        = 0.01
	checkpointInterval = "checkpoint interval"
	autoInterval       = "leave checkpoint.interval out of the job file: scrimp then picks it"
)

// interval saves checkpoints at the interval that scrimp picks. The simulation of each job says what that saves, and
// the formula what it saves of the others.
func interval(in *Input) *Recommendation {
	l := intervalOf(in)
	mine := func(c *Cost) bool {
		return c.Capacity == Spot && c.Time > 0 && in.Jobs[c.Job].Saves && in.OnInterval[c.Job] > leastPlayed
	}
	played, _ := in.sumOf(mine)
	if played.Sign() <= 0 {
		return l
	}
	others, evidence := shareOf(mine, nil), ""
	if l == nil {
		l = &Recommendation{Name: checkpointInterval, Confidence: Medium, Effort: Little, Risk: Little, Command: autoInterval}
	} else if l.share != nil {
		others, evidence = l.share, "; of other jobs, "+l.Evidence
	}
	l.Method, l.Confidence = Simulated, Medium
	l.Evidence = fmt.Sprintf("%s ran on spot in jobs that a simulation finds cheaper with the interval that scrimp picks "+
		"than with that of their file", money.Short(played, in.Currency)) + evidence
	l.share = func(c *Cost) *big.Rat {
		if mine(c) {
			return ratOf(in.OnInterval[c.Job])
		}
		return others(c)
	}
	return l
}

// intervalOf saves checkpoints at the interval at which saving and lost work cost least together (Young: the square
// root of 2 × cost of a save × time between interruptions). What saving costs today is not taken off, so the figure is
// low.
func intervalOf(in *Input) *Recommendation {
	var spot time.Duration
	var longest time.Duration
	interruptions := 0
	seen := map[string]bool{}
	ours := func(c *Cost) bool {
		_, played := in.OnInterval[c.Job]
		return c.Capacity == Spot && c.Job != "" && in.Jobs[c.Job].Saves && !played
	}
	mine := func(c *Cost) bool { return ours(c) && c.Use == Lost }
	lost, _ := in.sumOf(mine)
	if lost.Sign() <= 0 {
		return nil
	}
	running := money.Amount{}
	for i := range in.Costs {
		c := &in.Costs[i]
		if !ours(c) || c.Time <= 0 {
			continue
		}
		spot, running = spot+c.Time, running.Add(c.Amount)
		if !seen[c.Job] {
			seen[c.Job] = true
			interruptions += in.Jobs[c.Job].Interruptions
			longest = max(longest, in.Jobs[c.Job].SaveCost)
		}
	}
	l := &Recommendation{Name: checkpointInterval, Method: Formula, Confidence: Medium, Effort: Little, Risk: Little,
		Command: autoInterval}
	if interruptions == 0 || longest == 0 {
		l.Confidence, l.Method = Low, ""
		l.Evidence = fmt.Sprintf("%s of work was lost on spot; no save was measured, so the saving is unknown",
			money.Short(lost, in.Currency))
		return l
	}
	between := spot / time.Duration(interruptions)
	overhead := math.Sqrt(2 * longest.Seconds() / between.Seconds())
	best := part(running, ratOf(overhead))
	if best.Cmp(lost) >= 0 {
		return nil
	}
	every := time.Duration(overhead * float64(between)).Round(time.Second)
	l.Evidence = fmt.Sprintf("%s of work was lost in %d interruptions; at the best interval, %s, saves of at most %s and "+
		"lost work cost %s together", money.Short(lost, in.Currency), interruptions, every, longest.Round(time.Second),
		money.Short(best, in.Currency))
	l.share = shareOf(mine, new(big.Rat).SetFrac(lost.Sub(best).Big(), lost.Big()))
	return l
}

// retention removes volumes that no machine has.
func retention(in *Input) *Recommendation {
	stored := func(c *Cost) bool { return c.Storage }
	cost, _ := in.sumOf(stored)
	if in.Orphans.Sign() <= 0 || cost.Sign() <= 0 {
		return nil
	}
	return &Recommendation{Name: "retention", Method: Counted, Confidence: High, Effort: Little, Risk: Some,
		Evidence: fmt.Sprintf("%s of %s for storage were for volumes without a machine", money.Short(in.Orphans, in.Currency),
			money.Short(cost, in.Currency)),
		Command: "scrimp waste lists the volumes; scrimp gc removes old files of jobs",
		share:   shareOf(stored, new(big.Rat).SetFrac(in.Orphans.Big(), cost.Big()))}
}

// reservations renews less of what is reserved and not used.
func reservations(in *Input) *Recommendation {
	unused := func(c *Cost) bool { return c.Reserved && c.Use == Idle }
	cost, _ := in.sumOf(unused)
	if cost.Sign() <= 0 {
		return nil
	}
	return &Recommendation{Name: "smaller reservation", Method: Counted, Confidence: Medium, Effort: Some, Risk: Some,
		Evidence: fmt.Sprintf("%s of reserved time went unused; it is due until the reservation ends",
			money.Short(cost, in.Currency)),
		Command: "scrimp commit, which says how much to renew", share: shareOf(unused, big.NewRat(1, 1))}
}

// commitment points to scrimp commit where machines run on demand in most hours: it knows the prices of terms.
func commitment(in *Input) *Recommendation {
	hours := map[string]map[int64]bool{}
	for i := range in.Costs {
		if c := &in.Costs[i]; c.Capacity == OnDemand && c.Time > 0 {
			k := c.SKU + " in " + c.Region
			if hours[k] == nil {
				hours[k] = map[int64]bool{}
			}
			for at := c.Begin.Truncate(time.Hour); at.Before(c.Begin.Add(c.Time)); at = at.Add(time.Hour) {
				hours[k][at.Unix()] = true
			}
		}
	}
	most, of := 0, ""
	for k, h := range hours {
		if len(h) > most || len(h) == most && k < of {
			most, of = len(h), k
		}
	}
	all := int(in.Until.Sub(in.Since) / time.Hour)
	if all < 24*leastDays || 2*most < all {
		return nil
	}
	return &Recommendation{Name: "commitment", Confidence: Low, Effort: Much, Risk: Much,
		Evidence: fmt.Sprintf("%s ran on demand in %d of %d hours; a term may cost less", of, most, all),
		Command:  "scrimp commit, which compares the terms"}
}
