package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
)

// stage is a job on a market, and what is to be said of the two.
type stage struct {
	trace         market.Trace
	terms         core.Terms
	opened        time.Time
	restart, save time.Duration
	seeds         int

	fits   tick.Fits
	steady bool          // something fits that is not preemptible
	known  time.Duration // how far the market is known; 0: it repeats, or never changes
	late   bool          // nothing meets the deadline
	notes  []string
}

// span is the time from a submission to its deadline; 0: there is none.
func (s *stage) span() time.Duration {
	if s.terms.Deadline.IsZero() {
		return 0
	}
	return s.terms.Deadline.Sub(s.opened)
}

func (s *stage) notef(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// survey finds out what of the market fits the job, and refuses a market of which nothing does.
func (s *stage) survey(file string) error {
	if s.trace.Currency != money.USD {
		return fmt.Errorf("market %s is in %s, and jobs and simulations are in %s: convert its prices at a rate of your "+
			"own and write currency: %[3]s", s.trace.Name, s.trace.Currency, money.USD)
	}
	s.fits = fitsOf(s.terms.Need, core.Config{})
	fastest, sold := 0.0, []string{}
	for _, l := range s.trace.Lines {
		if m := fmt.Sprintf("%s with %s and %v", l.Offer.Machine, draw.Count(l.Offer.CPUs, "processor"),
			l.Offer.Memory); !slices.Contains(sold, m) {
			sold = append(sold, m)
		}
		for _, p := range pricesOf(l) {
			if speed, ok := s.fits(l.Offer, p.Rate); ok {
				fastest = max(fastest, speed)
				s.steady = s.steady || l.Offer.Capacity != market.Spot
			}
		}
	}
	if s.trace.Repeat <= 0 {
		s.known = max(s.known, lastKnown(s.trace))
	}
	images := func(l market.TraceLine) bool { return s.terms.Need.Imaged(&l.Offer) }
	switch {
	case fastest <= 0 && !slices.ContainsFunc(s.trace.Lines, images):
		return fmt.Errorf("%s: image: the machines of market %s are no containers: --image none plays the job without",
			file, s.trace.Name)
	case fastest <= 0:
		return fmt.Errorf("%s: resources, capacity or max_price: nothing on market %s fits the job; it sells %s", file,
			s.trace.Name, strings.Join(sold[:min(len(sold), 5)], ", "))
	}
	if least := time.Duration(float64(s.terms.Work)/fastest) + s.restart; s.span() > 0 && s.span() < least {
		s.late = true
		s.notef("no policy can meet the deadline in %s: the work alone takes %s on the fastest machine that fits, and %s "+
			"to start: give deadline: in %s or more",
			draw.Span(s.span()), draw.Span(least-s.restart), draw.Span(s.restart), draw.Span(least+s.restart))
	}
	if !s.steady {
		s.notef("market %s sells no on-demand machine that fits the job: there is no on-demand row, and no "+
			"deadline can be promised", s.trace.Name)
	}
	return nil
}

// pricesOf are the prices of a line; of a reserved machine it is the one that was paid.
func pricesOf(l market.TraceLine) []market.Price {
	if len(l.Price) == 0 {
		return []market.Price{{Rate: l.Reserved.Rate()}}
	}
	return l.Price
}

// lastKnown is the last moment at which a trace says something new, from its beginning.
func lastKnown(t market.Trace) (last time.Duration) {
	for _, l := range t.Lines {
		for _, p := range l.Price {
			last = max(last, p.At)
		}
		for _, a := range l.Available {
			last = max(last, a.To)
		}
	}
	return last
}

// fitsOf says on which offers a job may run, and how fast it does; c says whose machines jobs share.
func fitsOf(need plan.Need, c core.Config) tick.Fits {
	need.Ladder = nil // what comes later may come
	return func(o market.Offer, rate money.Rate) (float64, bool) {
		q := market.Quote{Offer: o.ID, Priced: true, Available: true, Rate: rate}
		sold := plan.Listings{Shared: func(provider string) bool { return c.TimingOf(provider).Seats > 1 }}
		l := plan.Listing{Offer: o, Quote: q}
		sold.Add(&l)
		return need.Fits(&l)
	}
}

// errNoEnd says why a job without a deadline has no optimum.
var errNoEnd = errors.New("without a deadline the job could wait for ever")

// starts spreads the submissions over the market; where it does not repeat, such
// that the deadlines lie in what is known of it, if they can.
func (s *stage) starts() []time.Duration {
	length := cmp.Or(s.trace.Repeat, max(0, s.known-max(s.span(), s.terms.Work+s.restart)))
	list := make([]time.Duration, s.seeds)
	for i := range list {
		list[i] = (length / time.Duration(s.seeds) * time.Duration(i)).Truncate(time.Second)
	}
	return list
}

func (a *app) playPolicies(cmd *cobra.Command, s *stage, names []string) ([]simulated, error) {
	p := played{stage: s, mind: plan.NewPlanner(), least: leasts{}}
	tell := a.Counter()
	var rows []simulated
	for _, name := range names {
		if name == string(policy.OnDemand) && !s.steady {
			continue
		}
		row, err := p.policy(cmd.Context(), name, tell)
		if err != nil {
			return nil, err
		}
		tell(name, s.seeds, s.seeds)
		if row.Runs == 0 {
			continue
		}
		row.mean()
		rows = append(rows, row)
		if row.Unfinished > 0 {
			s.notef("%s: %d of %s not done, and its cost is no cost of the work: %s", name, row.Unfinished,
				draw.Count(row.Runs, "run"), undone(row.Why))
		}
	}
	for i := range rows {
		if rows[i].Policy == replay.Optimum {
			rows[i].MeanUSD = p.least.sum() / float64(rows[i].Runs)
		}
	}
	p.note()
	compare(rows)
	return rows, nil
}

// played is what all runs of all policies have in common.
type played struct {
	*stage
	mind    *plan.Planner
	runs    int
	past    int // of them, that went on after the market is known
	least   leasts
	prepaid bool // one of them used reserved machines
}

// policy plays all runs of a policy; the row has none where there is no line of it.
func (p *played) policy(ctx context.Context, name string, tell func(string, int, int)) (simulated, error) {
	row := simulated{Policy: name}
	for n, from := range p.starts() {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		tell(name, n, p.seeds)
		if name == replay.Optimum {
			cost, err := p.optimum(from)
			if err != nil {
				p.notef("there is no row of the optimum: %v", err)
				row.Runs = 0
				return row, nil
			}
			row.Runs++
			p.least.found(n, cost.Float())
			continue
		}
		run := p.play(from, policy.Rule(name), p.mind)
		p.runs++
		if p.known > 0 && from+run.Finish > p.known {
			p.past++
		}
		p.least.played(n, run)
		row.add(run, n == 0)
		p.prepaid = p.prepaid || slices.ContainsFunc(run.Attempts, func(a *core.Attempt) bool {
			return a.Capacity() == market.Reserved && !a.From().IsZero()
		})
	}
	return row, nil
}

// note says what the figures of the runs are not.
func (p *played) note() {
	if at := p.starts(); p.seeds > 1 && at[p.seeds-1] == 0 {
		p.notef("market %s leaves no time to spread the runs over: all are submitted at its beginning, and are the same",
			p.trace.Name)
	}
	if p.prepaid {
		p.notef("hours on reserved machines are paid whether they are used or not: policies take them as free, and every " +
			"cost here, the optimum's too, counts them at the contract's price")
	}
	if p.past > 0 {
		p.notef("market %s is known for %s and does not repeat: %d of %d runs go on after that, when all stays as it was "+
			"last; give it repeat: or a longer one", p.trace.Name, draw.Span(p.known), p.past, p.runs)
	}
}

func (s *stage) play(from time.Duration, rule policy.Rule, mind *plan.Planner) sim.Played {
	terms := s.terms
	if span := s.span(); span > 0 {
		terms.Deadline = s.opened.Add(from + span)
	}
	if rule == policy.OnDemand {
		terms.Need.Ladder = nil // which may begin with spot
	}
	return sim.Play(sim.Playback{Terms: terms, Restart: s.restart, Save: s.save, Trace: s.trace, Opened: s.opened,
		From: from, Policy: rule, Planner: mind})
}

func (r *simulated) add(p sim.Played, first bool) {
	r.Runs++
	r.MeanUSD += p.Cost.Float()
	r.Interruptions += float64(p.Interruptions)
	r.Moves += float64(p.Moves)
	r.LostS += p.LostTime.Seconds()
	r.LostUSD += p.Lost.Float()
	if !p.InTime {
		r.Misses++
	}
	if p.State == core.Succeeded {
		r.FinishS += p.Finish.Seconds()
	} else {
		r.Unfinished++
		r.Why = cmp.Or(r.Why, p.Why)
	}
	if first {
		r.first, r.finish = pieces(p), p.Finish
		if p.State != core.Succeeded && len(r.first) > 0 {
			r.finish = r.first[len(r.first)-1].to
		} else if p.State != core.Succeeded {
			r.finish = 0
		}
	}
}

// mean turns sums into means.
func (r *simulated) mean() {
	runs := float64(r.Runs)
	for _, v := range []*float64{&r.MeanUSD, &r.Interruptions, &r.Moves, &r.LostS, &r.LostUSD} {
		*v /= runs
	}
	if done := r.Runs - r.Unfinished; done > 0 {
		r.FinishS /= float64(done)
	}
}

// undone says why a run was not done.
func undone(why string) string {
	switch why {
	case string(plan.OutOfMoney), string(policy.BudgetSpent), string(plan.BudgetGone), string(plan.BudgetWait):
		return "the budget does not pay for it (" + why + ")"
	case string(plan.NoCapacity), string(plan.WaitsSpot), string(plan.NoOffer):
		return "no matching offer had capacity any more (" + why + ")"
	}
	return cmp.Or(why, "it did not say why")
}

// compare sets the rows beside the optimum and on-demand. What was not done is compared with nothing.
func compare(rows []simulated) {
	for i := range rows {
		for _, o := range rows {
			if o.MeanUSD <= 0 || o.Unfinished+rows[i].Unfinished > 0 {
				continue
			}
			share := rows[i].MeanUSD / o.MeanUSD
			switch o.Policy {
			case replay.Optimum:
				over := share - 1
				rows[i].OverOptimum = &over
			case string(policy.OnDemand):
				rows[i].OfOnDemand = &share
			}
		}
		rows[i].Timeline = timeline(rows[i].first, longest(rows), laneJSON)
	}
}

// optimum is what the job would cost with the trace known in advance.
func (s *stage) optimum(from time.Duration) (money.Amount, error) {
	span := s.span()
	switch {
	case span <= 0:
		return money.Amount{}, errNoEnd
	case s.late:
		return money.Amount{}, tick.ErrLate
	}
	return tick.Hindsight(s.trace, s.fits, tick.Nodes{Least: s.terms.Fewest(), Most: s.terms.Most()}, from,
		s.terms.Work, span, s.restart)
}
