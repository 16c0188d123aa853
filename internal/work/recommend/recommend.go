// Package recommend ranks what a team can do to spend less. It computes each saving from the team's own costs of a
// span: it takes the costs, applies a recommendation to them, and says what would be left.
package recommend

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Use is what became of a cost, as in the ledger.
type Use string

// Uses of a cost.
const (
	Open    Use = "open"
	Useful  Use = "useful"
	Lost    Use = "lost"
	StartUp Use = "start-up"
	Idle    Use = "idle"
)

// Capacities of a machine.
const (
	Spot     = "spot"
	OnDemand = "on-demand"
)

// Cost is a cost of the ledger.
type Cost struct {
	Job, Series, Instance string // Job "": no job had the machine
	SKU, Region, Capacity string
	Use                   Use
	Storage, Reserved     bool // of a volume; unused time of a reservation
	Due                   bool // a minimum charge, which is due in any case
	Begin                 time.Time
	Time                  time.Duration // of machine time; 0: it is none
	Amount                money.Amount
	List                  money.Amount // at the on-demand price of the time
	Listed                bool         // List is known
}

// Job is what is known of a job with a cost.
type Job struct {
	Saves         bool // it resumes from checkpoints
	Deadline      bool
	Interruptions int
	SaveCost      time.Duration // of one checkpoint, measured; 0: unknown
}

// Oversized is a job that the waste report would run on a smaller machine.
type Oversized struct {
	Series, SKU, Capacity string
	Cost, Waste           money.Amount
}

// Input is the costs of a span in one currency.
type Input struct {
	Since, Until time.Time
	Currency     money.Currency
	Costs        []Cost
	Jobs         map[string]Job
	Oversized    []Oversized
	Full32       map[string]float64 // share of a job's cost that 16 bits would save, of jobs that compute in 32
	// OnSpot and OnInterval hold, for each simulated job, the share of its cost that spot capacity or scrimp's own
	// checkpoint interval would save. OnInterval is 0 for a job that leaves the interval to scrimp.
	OnSpot, OnInterval map[string]float64

	Orphans money.Amount // cost of volumes without a machine
	Target  float64      // share of the spending to save, 0 to 1
}

// Confidence is how sure a saving is.
type Confidence string

// Confidences.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Method is how a saving was computed.
type Method string

// Methods.
const (
	Counted   Method = "costs"      // a sum of costs that would be gone
	Compared  Method = "comparison" // with what the same cost the team elsewhere, or at other hours
	Estimated Method = "estimate"   // by the estimate of memory and time
	Formula   Method = "formula"
	Simulated Method = "simulation" // of the team's own jobs, on the market as it is
)

// Effort is the work that a recommendation needs, and Risk what it may cost in time or results.
type Effort string

// Efforts, also used for risks.
const (
	Little Effort = "low"
	Some   Effort = "medium"
	Much   Effort = "high"
)

// Recommendation is something to do.
type Recommendation struct {
	Name       string               `json:"name"`
	Alone      *money.Amount        `json:"alone"`  // saved in the span by this recommendation alone; null: unknown
	Saving     *money.Amount        `json:"saving"` // saved after the recommendations above it; null: unknown
	Sum        money.Amount         `json:"sum"`    // saved by it and the recommendations above it
	Needed     bool                 `json:"needed"` // the target is not reached without it
	Method     Method               `json:"method"` // how the saving was computed; "": it is unknown
	Confidence Confidence           `json:"confidence"`
	Effort     Effort               `json:"effort"`
	Risk       Effort               `json:"risk"`
	Evidence   string               `json:"evidence"`
	Command    string               `json:"command"`
	share      func(*Cost) *big.Rat // the part of a cost that it saves; nil: unknown
}

// Plan says how far the recommendations lead.
type Plan struct {
	Currency        money.Currency   `json:"currency"`
	Since           time.Time        `json:"since"`
	Until           time.Time        `json:"until"`
	Spent           money.Amount     `json:"spent"`
	Target          money.Amount     `json:"target"`          // to save
	Reached         money.Amount     `json:"reached"`         // with all recommendations whose saving is known
	Share           float64          `json:"share"`           // Reached of Spent
	Enough          bool             `json:"enough"`          // Reached is at least Target
	Recommendations []Recommendation `json:"recommendations"` // the best first; those of unknown saving last
}

// Make ranks the recommendations and applies them one after the other, so that no dollar is saved twice.
func Make(in *Input) Plan {
	p := Plan{Currency: in.Currency, Since: in.Since, Until: in.Until, Recommendations: []Recommendation{}}
	for i := range in.Costs {
		p.Spent = p.Spent.Add(in.Costs[i].Amount)
	}
	p.Target = part(p.Spent, ratOf(in.Target))
	for _, find := range []func(*Input) *Recommendation{idleStop, smaller, precision, spotShare, interval, window,
		retention, reservations, commitment} {
		l := find(in)
		if l == nil {
			continue
		}
		if l.share != nil {
			saved := in.apply(l, slices.Clone(in.Costs))
			if saved.Sign() <= 0 {
				continue
			}
			l.Alone = &saved
		}
		p.Recommendations = append(p.Recommendations, *l)
	}
	slices.SortStableFunc(p.Recommendations, func(a, b Recommendation) int { return cmp.Compare(b.score(), a.score()) })
	left := slices.Clone(in.Costs)
	for i := range p.Recommendations {
		l := &p.Recommendations[i]
		if l.share != nil {
			saved := in.apply(l, left)
			l.Saving, l.Needed = &saved, p.Reached.Cmp(p.Target) < 0 && saved.Sign() > 0
			p.Reached = p.Reached.Add(saved)
		}
		l.Sum = p.Reached
	}
	p.Enough = p.Reached.Cmp(p.Target) >= 0
	if p.Spent.Sign() > 0 {
		p.Share = p.Reached.Float() / p.Spent.Float()
	}
	return p
}

// score is the saving by its confidence and effort. Recommendations of unknown saving come last.
func (l *Recommendation) score() float64 {
	if l.Alone == nil {
		return -1
	}
	sure := map[Confidence]float64{High: 0.9, Medium: 0.6, Low: 0.3}[l.Confidence]
	work := map[Effort]float64{Little: 1, Some: 2, Much: 3}[l.Effort]
	return l.Alone.Float() * sure / work
}

// apply lowers the costs by what the recommendation saves of them, and returns the sum.
func (in *Input) apply(l *Recommendation, costs []Cost) (saved money.Amount) {
	for i := range costs {
		c := &costs[i]
		if c.Amount.Sign() <= 0 {
			continue // a correction
		}
		if share := l.share(c); share != nil && share.Sign() > 0 {
			less := part(c.Amount, share)
			c.Amount, saved = c.Amount.Sub(less), saved.Add(less)
		}
	}
	return saved
}

// part returns a share of an amount, cut off at 1e-12. A share is at most 1.
func part(a money.Amount, share *big.Rat) money.Amount {
	if share.Cmp(big.NewRat(1, 1)) >= 0 {
		return a
	}
	n := new(big.Int).Mul(a.Big(), share.Num())
	cut, _ := money.FromBig(n.Quo(n, share.Denom())) // smaller than a
	return cut
}

// ratOf returns a share of a statistic with six decimals.
func ratOf(share float64) *big.Rat {
	switch {
	case !(share > 0): // also NaN
		return new(big.Rat)
	case share > 1:
		share = 1
	}
	return big.NewRat(int64(share*1e6), 1e6)
}
