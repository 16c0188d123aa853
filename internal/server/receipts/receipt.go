package receipts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/sample"
	"scrimp/internal/market"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/view/convert"
)

// Receipt reports what a job cost, and why.
func (b *Service) Receipt(w http.ResponseWriter, r *http.Request) {
	j, known := b.known(w, r)
	if !known {
		return
	}
	v, err := b.receipt(r.Context(), j.ID)
	if err != nil {
		reports.Unread(w, "no receipt", err)
		return
	}
	reply.JSON(w, convert.To[client.Receipt](v))
}

// receipt builds the receipt of a job from the core's state and the log.
func (b *Service) receipt(ctx context.Context, id string) (receipt.Receipt, error) {
	now := b.Control.Now()
	var j *core.Job
	var v receipt.Receipt
	var of view.Job
	var seq uint64
	var interval time.Duration
	b.Control.Job(id, func(m *core.Machine, live *core.Job) {
		j, seq, interval = live.Copy(), m.Seq(), m.Interval(live)
		if p, ok := m.CostOnDemand(live); ok {
			v.OnDemandCost, v.OnDemandOffer = &p.Cost, string(p.Offer)
		}
		v.IdleAfter, of = m.IdleAfter(live, now), jobOf(m, live)
	})
	if j == nil {
		return v, fmt.Errorf("job %s is not known", id)
	}
	b.addOutcome(&v, j, now)
	running := b.addAttempts(&v, j, now)
	addPreemptions(&v, j)
	postings, err := b.sums(ctx, &v, seq, v.Cost.Sub(running))
	if err != nil {
		return v, err
	}
	b.addSavings(&v, j, interval)
	if err := b.history(ctx, &v, of, j); err != nil {
		return v, err
	}
	addSpending(&v, j, postings)
	if v.Telemetry, v.Data, err = b.Machines(ctx, j); err != nil {
		return v, err
	}
	v.Tips = tips(v)
	return v, v.Check()
}

// addOutcome adds the job's description and how it ended.
func (b *Service) addOutcome(v *receipt.Receipt, j *core.Job, now time.Time) {
	clock, terms := b.Control.Clock(), j.Terms()
	v.Job, v.Name, v.State, v.Reason, v.Currency = j.ID(), terms.Name, string(j.State()), j.Why(), terms.Currency
	v.Cost, v.MarketSpeed, v.Market = j.Spent(now), clock.Speed, b.Control.Clock().Name
	v.Step, v.Metrics, v.SaveTrouble = j.Step(), j.Metrics(), j.SaveTrouble()
	v.Outputs, v.OutputsDigest = j.Outputs(), j.OutputsDigest()
	v.Submitted, v.SubmittedMarket = clock.ToWall(j.Submitted()), j.Submitted()
	if terms.HasBudget {
		v.Budget = new(terms.Budget)
	}
	if j.Total() > 0 {
		v.Total = new(j.Total())
	}
	if !j.Finished().IsZero() {
		v.Finished, v.FinishedMarket = new(clock.ToWall(j.Finished())), new(j.Finished())
	}
	if d := terms.Deadline; !d.IsZero() {
		v.Deadline, v.DeadlineMarket = new(clock.ToWall(d)), new(d)
		if j.State() == core.Succeeded || j.State().Over() && j.Finished().After(d) { // else it ended early
			v.DeadlineMet = new(j.State() == core.Succeeded && !j.Finished().After(d))
		}
	}
}

// addSavings adds what the cost bought: savings, and cost per unit of work.
func (b *Service) addSavings(v *receipt.Receipt, j *core.Job, interval time.Duration) {
	clock := b.Control.Clock()
	if v.OnDemandCost != nil && j.State() == core.Succeeded {
		v.Saved = new(v.OnDemandCost.Sub(v.Comparable()))
		if v.OnDemandCost.Sign() > 0 {
			v.SavedShare = new(v.Saved.Float() / v.OnDemandCost.Float())
		}
	} else {
		v.OnDemandCost, v.OnDemandOffer = nil, "" // unfinished work has no comparable on-demand price
	}
	if j.Step() > 0 {
		v.CostPer1000 = new(v.Cost.Float() / float64(j.Step()) * 1000)
	}
	if j.EpochSeen() > 0 {
		v.CostPerEpoch = new(v.Cost.Float() / j.EpochSeen())
	}
	if j.SaveCost() > 0 {
		save := clock.Shrink(j.SaveCost()).Seconds()
		v.SaveSeconds = &save
	}
	if interval > 0 {
		every := clock.Shrink(interval).Seconds()
		v.IntervalSeconds = &every
	}
}

// addAttempts adds the attempts and their sums. It returns the cost of running machines since their last posting.
func (b *Service) addAttempts(v *receipt.Receipt, j *core.Job, now time.Time) (running money.Amount) {
	v.Uses = map[ledger.Use]money.Amount{}
	v.Interruptions, v.Tries = []receipt.Interruption{}, []receipt.Try{}
	for n, a := range j.Attempts() {
		t, open := tryOf(a, now)
		running = running.Add(open)
		if a.Capacity() == market.Reserved {
			if v.AlreadyPaid == nil {
				v.AlreadyPaid = new(money.Amount)
			}
			machine := a.Machine()
			*v.AlreadyPaid = v.AlreadyPaid.Add(machine.Owned(t.Cost.Sub(a.Reads())))
		}
		for u, amount := range t.Uses {
			v.Uses[u] = v.Uses[u].Add(amount)
		}
		v.Attempts++
		v.CostWithoutRules = v.CostWithoutRules.Add(t.Cost).Sub(a.Rules())
		v.LostSeconds += a.LostTime().Seconds()
		v.Checkpoints += a.Saves()
		v.CheckpointBytes += a.SavedBytes()
		v.Tries = append(v.Tries, t)
		if a.Taken() {
			v.Interrupted++
		}
		for _, k := range a.Tasks() {
			if k.Taken() {
				v.Interruptions = append(v.Interruptions, b.interruption(k, j.Attempts()[n+1:]))
			}
		}
	}
	for _, a := range j.Wanted() { // tasks of gangs that are not complete
		if len(a.Granted()) == 0 {
			continue
		}
		cost := a.Cost(now)
		running = running.Add(cost)
		v.Uses[ledger.Open] = v.Uses[ledger.Open].Add(cost)
		v.CostWithoutRules = v.CostWithoutRules.Add(cost)
		v.Tries = append(v.Tries, receipt.Try{Attempt: a.ID(), Instance: a.Granted()[0], Offer: string(a.Offer()),
			Capacity: string(a.Machine().Capacity), From: a.Since(), Until: now, Rate: a.PresentRate(), Cost: cost,
			Uses: map[ledger.Use]money.Amount{ledger.Open: cost}, End: "gang_wait"})
	}
	return running
}

// tryOf returns an attempt, and the part of its cost that is not posted yet.
func tryOf(a *core.Attempt, now time.Time) (t receipt.Try, open money.Amount) {
	until := a.Until()
	if until.IsZero() {
		until = now
	}
	t = receipt.Try{
		Attempt: a.ID(), Instance: a.Instance(), Offer: string(a.Offer()), Capacity: string(a.Capacity()),
		From: a.From(), Until: until, Rate: a.LaunchRate(), Cost: a.Posted().Add(a.Rules()),
		Uses: map[ledger.Use]money.Amount{}, First: a.First(), Last: a.Step(), Restored: a.Restored(), End: a.End(),
	}
	for u, amount := range a.Uses() {
		t.Uses[u] = amount
	}
	if a.Taken() {
		t.End = "interrupted"
	}
	if a.Live() {
		open = a.Cost(now).Sub(a.Posted())
		t.Cost = t.Cost.Add(open)
		t.Uses[ledger.Open] = t.Uses[ledger.Open].Add(open)
		t.End = string(a.Stage())
	}
	if !a.Started().IsZero() {
		t.Begun = new(a.Started())
	}
	if reads := a.Reads(); !reads.IsZero() {
		t.Rules = append(t.Rules, receipt.Rule{Rule: receipt.Reading, Amount: reads})
	}
	if rest := a.Rules().Sub(a.Reads()); !rest.IsZero() {
		t.Rules = append(t.Rules, receipt.Rule{Rule: "provider", Amount: rest})
	}
	if a.Nodes() > 1 {
		for _, k := range a.Tasks() {
			t.Nodes = append(t.Nodes, nodeOf(k, now))
		}
	}
	return t, open
}

// nodeOf returns one machine of an attempt that has several.
func nodeOf(k *core.Task, now time.Time) receipt.Node {
	n := receipt.Node{Node: k.Rank(), Instance: k.Instance(), From: k.From(), Until: k.Until(),
		Cost: k.Posted().Add(k.Rules()), Uses: map[ledger.Use]money.Amount{}, End: k.End()}
	for u, amount := range k.Uses() {
		n.Uses[u] = amount
	}
	switch {
	case k.Taken():
		n.End = "interrupted"
	case k.Live():
		open := k.Cost(now).Sub(k.Posted())
		n.Cost, n.Uses[ledger.Open] = n.Cost.Add(open), n.Uses[ledger.Open].Add(open)
		n.Until, n.End = now, string(k.Phase())
	}
	return n
}

// interruption returns the interruption of a machine, with the checkpoint that the next attempt restored.
func (b *Service) interruption(k *core.Task, after []*core.Attempt) receipt.Interruption {
	clock, notice := b.Control.Clock(), k.Notice()
	if !k.Noticed().IsZero() {
		notice = clock.Shrink(k.Warned()).Round(100 * time.Millisecond)
	}
	i := receipt.Interruption{
		Instance: k.Instance(), Node: k.Rank(), At: clock.ToWall(k.Until()), MarketAt: k.Until(), Notice: notice.Seconds(),
	}
	for _, next := range after {
		if !next.Started().IsZero() {
			if next.Restored() != "" {
				i.Restored = new(next.Restored())
			}
			break
		}
	}
	return i
}

// history adds what only the log has: decisions and the metric. The log has every value of the metric that judges
// the job, and samples of others for a while.
func (b *Service) history(ctx context.Context, v *receipt.Receipt, of view.Job, j *core.Job) error {
	r := newMetricReader(b, j)
	v.LossName = r.name
	v.Decisions = []receipt.Decision{}
	var rejected []string // by the decision before
	err := b.events(ctx, of, view.Decisions|view.Progress, func(_ uint64, e core.Event, facts []core.Fact) error {
		r.event(e)
		for _, f := range facts {
			if d, ok := f.(state.Decided); ok && d.Job == j.ID() {
				rejected = addChoice(v, e.At, d, rejected, refusal(e, facts, j.ID()).Reason)
			}
		}
		return nil
	})
	for _, one := range sample.Evenly(r.all(), 400) {
		if !one.Broken {
			v.Loss = append(v.Loss, receipt.Sample{Step: one.Step, At: one.At, Value: one.Value.Value})
		}
	}
	return err
}

// addChoice adds a decision if it differs from the one before. It returns the offers that the decision rejected.
func addChoice(v *receipt.Receipt, at time.Time, d state.Decided, before []string, refused string) (rejected []string) {
	line := receipt.Decision{MarketAt: at, Take: string(d.Decision.Take), Why: string(d.Decision.Why),
		Mode: string(d.Decision.Mode), Refused: refused}
	if d.SameRejected {
		line.Rejected = before
	}
	for _, r := range d.Decision.Rejected {
		line.Rejected = append(line.Rejected, fmt.Sprintf("%s: %s", r.Offer, strings.ReplaceAll(string(r.Why), "_", " ")))
	}
	for _, n := range d.Decision.Counts {
		line.Rejected = append(line.Rejected, fmt.Sprintf("%d in all: %s", n.Count,
			strings.ReplaceAll(string(n.Why), "_", " ")))
	}
	if n := len(v.Decisions); n > 0 {
		if last := &v.Decisions[n-1]; last.Take == line.Take && last.Why == line.Why && last.Mode == line.Mode {
			last.Refused = cmp.Or(last.Refused, refused)
			return line.Rejected
		}
	}
	v.Decisions = append(v.Decisions, line)
	return line.Rejected
}

// sums checks that the ledger up to event seq equals exactly what the job had posted at that event. It returns the
// postings of the job's costs.
func (b *Service) sums(ctx context.Context, v *receipt.Receipt, seq uint64,
	want money.Amount) ([]ledger.Posting, error) {
	posted, besides := money.Amount{}, money.Amount{}
	v.Categories, v.BillExtras = map[ledger.Category]money.Amount{}, map[string]money.Amount{}
	var costs []ledger.Posting
	for p, err := range b.Log.Postings(ctx, b.Control.Tenant(), v.Job) {
		if err != nil {
			return nil, err
		}
		if p.Event > seq {
			continue // posted after the job was read
		}
		v.Ledger.Postings, v.Ledger.Head = v.Ledger.Postings+1, p.Hash
		cost := core.Cost(p)
		if cost.IsZero() {
			continue
		}
		posted, costs = posted.Add(cost), append(costs, p)
		if part, apart := ledger.Apart(p.Rule); apart {
			v.BillExtras[part] = v.BillExtras[part].Add(cost)
		}
		if p.Category != ledger.Compute {
			v.Categories[p.Category] = v.Categories[p.Category].Add(cost)
			besides = besides.Add(cost)
		}
	}
	maps.DeleteFunc(v.BillExtras, func(_ string, a money.Amount) bool { return a.IsZero() }) // a bill was revised
	if len(v.BillExtras) == 0 {
		v.BillExtras = nil
	}
	v.Categories[ledger.Compute] = v.Cost.Sub(besides) // running machines are not fully posted
	v.Ledger.Agrees = posted == want
	return costs, nil
}
