package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/receipt"
)

func (s *Server) getReceipt(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.job(w, r); !ok {
		return
	}
	v, err := s.receipt(r.Context(), r.PathValue("id"))
	if err != nil {
		problem(w, http.StatusInternalServerError, "no receipt", "scrimp ledger verify says where the log is broken", err)
		return
	}
	answer(w, v)
}

// receipt makes the receipt of a job from the core's state and the log.
func (s *Server) receipt(ctx context.Context, id string) (receipt.Receipt, error) {
	clock, now := s.control.Clock(), s.control.Now()
	var j core.Job
	var v receipt.Receipt
	var seq uint64
	s.control.Read(func(m *core.Machine) {
		seq = m.Seq()
		live, _ := m.Job(id)
		b, _ := json.Marshal(live) // a copy that the core does not touch
		_ = json.Unmarshal(b, &j)
		v.OnDemandCost = m.CostOnDemand(&j)
	})
	v.Job, v.Name, v.State, v.Reason, v.Currency = j.ID(), j.Terms().Name, string(j.State()), j.Why(), j.Terms().Currency
	v.Cost, v.MarketSpeed, v.Market, v.Step, v.Metrics, v.Outputs = j.Spent(now), clock.Speed, s.clock.Name, j.Step(), j.Metrics(), j.Outputs()
	v.Submitted, v.SubmittedMarket = clock.ToWall(j.Submitted()), j.Submitted()
	if j.Terms().HasBudget {
		v.Budget = ptr(j.Terms().Budget)
	}
	if j.Total() > 0 {
		v.Total = ptr(j.Total())
	}
	if !j.Finished().IsZero() {
		v.Finished, v.FinishedMarket = ptr(clock.ToWall(j.Finished())), ptr(j.Finished())
	}
	if d := j.Terms().Deadline; !d.IsZero() {
		v.Deadline, v.DeadlineMarket = ptr(clock.ToWall(d)), ptr(d)
		if j.State().Over() {
			v.DeadlineMet = ptr(j.State() == core.Succeeded && !j.Finished().After(d))
		}
	}
	running := s.tries(&v, &j, now)
	if v.OnDemandCost != nil && j.State() == core.Succeeded {
		v.Saved = ptr(v.OnDemandCost.Sub(v.Cost))
		if v.OnDemandCost.Sign() > 0 {
			v.SavedShare = ptr(v.Saved.Float() / v.OnDemandCost.Float())
		}
	} else {
		v.OnDemandCost = nil // what was not done has no price elsewhere
	}
	if j.Step() > 0 {
		v.CostPer1000 = ptr(v.Cost.Float() / float64(j.Step()) * 1000)
	}
	if j.EpochSeen() > 0 {
		v.CostPerEpoch = ptr(v.Cost.Float() / j.EpochSeen())
	}
	if j.SaveCost() > 0 {
		v.SaveSeconds = ptr(clock.Shrink(j.SaveCost()).Seconds())
	}
	if j.Interval > 0 {
		v.IntervalSeconds = ptr(clock.Shrink(j.Interval).Seconds())
	}
	if err := s.history(ctx, &v, &j); err != nil {
		return v, err
	}
	if err := s.sums(ctx, &v, seq, v.Cost.Sub(running)); err != nil {
		return v, err
	}
	v.Tips = tips(v)
	return v, v.Check()
}

// tries adds the attempts and what they sum to. It returns the part of the cost
// that has run up since the last posting of machines that still run.
func (s *Server) tries(v *receipt.Receipt, j *core.Job, now time.Time) (running money.Amount) {
	clock := s.control.Clock()
	v.Uses = map[ledger.Use]money.Amount{}
	v.Interruptions, v.Tries = []receipt.Interruption{}, []receipt.Try{}
	for n, a := range j.Attempts() {
		if a.Instance() == "" {
			continue
		}
		v.Attempts++
		until := a.Until()
		if until.IsZero() {
			until = now
		}
		t := receipt.Try{
			Attempt: a.ID(), Instance: a.Instance(), Offer: string(a.Offer()), Capacity: string(a.Capacity()), From: a.From(), Until: until, Rate: a.Rates[0].Rate,
			Cost: a.Posted().Add(a.Rules()), Uses: a.Uses(), First: a.First(), Last: a.Step(), Restored: a.Restored(), End: a.End(),
		}
		if a.Taken() {
			t.End = "interrupted"
		}
		if a.Live() { // the part that is not posted yet is open
			open := a.Cost(now).Sub(a.Posted())
			running = running.Add(open)
			t.Cost = t.Cost.Add(open)
			t.Uses[ledger.Open] = t.Uses[ledger.Open].Add(open)
			t.End = string(a.Phase())
		}
		if !a.Started().IsZero() {
			t.Begun = ptr(a.Started())
		}
		if !a.Rules().IsZero() {
			t.Rules = append(t.Rules, receipt.Rule{Rule: "provider", Amount: a.Rules()})
		}
		if a.Capacity() == market.Reserved {
			if v.AlreadyPaid == nil {
				v.AlreadyPaid = new(money.Amount)
			}
			*v.AlreadyPaid = v.AlreadyPaid.Add(t.Cost)
		}
		for u, amount := range t.Uses {
			v.Uses[u] = v.Uses[u].Add(amount)
		}
		v.CostWithoutRules = v.CostWithoutRules.Add(t.Cost).Sub(a.Rules())
		v.LostSeconds += a.LostTime().Seconds()
		v.Checkpoints += a.Saves()
		v.CheckpointBytes += a.SavedBytes()
		v.Tries = append(v.Tries, t)
		if a.Taken() {
			notice := a.Notice()
			if !a.Noticed().IsZero() {
				notice = clock.Shrink(a.TakenAt().Sub(a.Noticed())).Round(100 * time.Millisecond)
			}
			i := receipt.Interruption{Instance: a.Instance(), At: clock.ToWall(a.Until()), MarketAt: a.Until(), Notice: notice.Seconds()}
			for _, next := range j.Attempts()[n+1:] {
				if !next.Started().IsZero() {
					if next.Restored() != "" {
						i.Restored = ptr(next.Restored())
					}
					break
				}
			}
			v.Interruptions = append(v.Interruptions, i)
		}
	}
	return running
}

// history adds what only the log has: decisions, the metric and the spend over time.
func (s *Server) history(ctx context.Context, v *receipt.Receipt, j *core.Job) error {
	attempts := map[string]bool{}
	for _, a := range j.Attempts() {
		attempts[a.ID()] = true
	}
	name := j.Terms().Metric.Name
	if name == "" {
		name = "loss"
	}
	v.LossName = name
	v.Decisions = []receipt.Decision{}
	err := s.each(ctx, func(_ uint64, e core.Event, decisions []core.Decision) error {
		if b, ok := e.Body.(core.Progressed); ok && attempts[b.Attempt] {
			if value, ok := b.Metrics[name]; ok {
				v.Loss = append(v.Loss, receipt.Sample{Step: b.Step, At: e.At, Value: value})
			}
		}
		for _, d := range decisions {
			if d.Job != j.ID() {
				continue
			}
			line := receipt.Decision{MarketAt: e.At, Take: string(d.Take), Why: string(d.Why), Mode: string(d.Mode)}
			for _, r := range d.Rejected {
				line.Rejected = append(line.Rejected, fmt.Sprintf("%s: %s", r.Offer, strings.ReplaceAll(string(r.Why), "_", " ")))
			}
			for _, n := range d.Counts {
				line.Rejected = append(line.Rejected, fmt.Sprintf("%d in all: %s", n.Count, strings.ReplaceAll(string(n.Why), "_", " ")))
			}
			if n := len(v.Decisions); n > 0 && v.Decisions[n-1].Take == line.Take && v.Decisions[n-1].Why == line.Why && v.Decisions[n-1].Mode == line.Mode {
				continue
			}
			v.Decisions = append(v.Decisions, line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	v.Loss = thin(v.Loss, 400)
	times := []time.Time{j.Submitted()}
	for _, a := range j.Attempts() {
		if a.Instance() != "" {
			times = append(times, a.From())
			if !a.Until().IsZero() {
				times = append(times, a.Until())
			}
		}
	}
	for _, l := range thin(v.Loss, 100) {
		times = append(times, l.At)
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, t := range times {
		at := receipt.Spent{At: t}
		for _, a := range j.Attempts() {
			at.Amount = at.Amount.Add(a.Cost(t))
			if !a.Until().IsZero() && !t.Before(a.Until()) {
				at.Amount = at.Amount.Add(a.Rules())
			}
		}
		v.Spend = append(v.Spend, at)
	}
	return nil
}

// thin keeps at most n of the list, evenly, the first and the last among them.
func thin[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	kept := make([]T, 0, n)
	for i := range n {
		kept = append(kept, list[i*(len(list)-1)/(n-1)])
	}
	return kept
}

// sums holds the ledger, up to event seq, against what the job had posted at that
// event, to the last unit.
func (s *Server) sums(ctx context.Context, v *receipt.Receipt, seq uint64, want money.Amount) error {
	posted := money.Amount{}
	for p, err := range s.store.Postings(ctx, "default", v.Job) {
		if err != nil {
			return err
		}
		if p.Event > seq {
			continue // posted since the job was looked at
		}
		v.Ledger.Postings++
		v.Ledger.Head = p.Hash
		if _, _, ok := p.To.IsCost(); ok {
			posted = posted.Add(p.Amount)
		}
		if _, _, ok := p.From.IsCost(); ok {
			posted = posted.Sub(p.Amount)
		}
	}
	v.Ledger.Agrees = posted == want
	return nil
}

// tips are what would make the next run cheaper, by rules over the receipt.
func tips(v receipt.Receipt) []receipt.Tip {
	list := []receipt.Tip{}
	share := func(u ledger.Use) float64 { return v.Uses[u].Float() / max(v.Cost.Float(), 1e-12) }
	add := func(saves money.Amount, format string, args ...any) {
		t := receipt.Tip{Text: fmt.Sprintf(format, args...)}
		if saves.Sign() > 0 {
			t.Saves = ptr(saves.Float())
		}
		list = append(list, t)
	}
	if share(ledger.Lost) > 0.01 {
		add(v.Uses[ledger.Lost], "%.0f %% of the cost was work that was lost: save more often, or let the program call scrimp.should_checkpoint()", share(ledger.Lost)*100)
	}
	if share(ledger.StartUp) > 0.01 {
		add(v.Uses[ledger.StartUp], "%.0f %% of the cost was start-up: make set-up and restore quicker", share(ledger.StartUp)*100)
	}
	ruled := v.Cost.Sub(v.CostWithoutRules) // what is billed beyond the seconds, such as a minimum, is booked as idle
	if ruled.Sign() < 0 {
		ruled = money.Amount{}
	}
	if part := ruled.Float() / max(v.Cost.Float(), 1e-12); part > 0.01 {
		add(ruled, "%.0f %% of the cost is billed beyond the seconds used, such as a least time: shorter runs cost no less", part*100)
	}
	if idle := v.Uses[ledger.Idle].Sub(ruled); idle.Float()/max(v.Cost.Float(), 1e-12) > 0.01 {
		add(idle, "%.0f %% of the cost was a machine without work: keep outputs and the last save small", 100*idle.Float()/v.Cost.Float())
	}
	firm := money.Amount{}
	for _, t := range v.Tries {
		if t.Capacity == string(market.OnDemand) {
			firm = firm.Add(t.Cost)
		}
	}
	if firm.Sign() > 0 && v.Deadline != nil {
		add(money.Amount{}, "%s went to on-demand to be in time: a later deadline would leave more to spot", money.Format(firm, v.Currency, 4))
	}
	if v.Checkpoints == 0 && v.State == string(core.Succeeded) {
		add(money.Amount{}, "no checkpoint was saved: with checkpoint.dir an interruption would not lose everything")
	}
	return list
}
