package reports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/chargeback"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

const monthFix = "write a month that has begun, such as 2026-10"

// MonthOf parses the month of a request, or answers what is wrong with it. Empty text means the current month.
func MonthOf(w http.ResponseWriter, text string, now time.Time) (span charge.Span, ok bool) {
	if text == "" {
		text = now.UTC().Format("2006-01")
	}
	at, err := time.Parse("2006-01", text)
	switch {
	case err == nil && at.Year() < 1970:
		reply.FieldProblem(w, http.StatusBadRequest, "month", "this month is before 1970, and scrimp keeps none so early",
			monthFix, nil)
		return span, false
	case err != nil:
		reply.FieldProblem(w, http.StatusBadRequest, "month", "this is no month", monthFix, nil)
		return span, false
	case at.After(now):
		reply.FieldProblem(w, http.StatusBadRequest, "month", "this month has not begun", monthFix, nil)
		return span, false
	}
	return charge.Span{Since: at, Until: charge.NextMonth(at)}, true
}

// Chargeback divides the costs of a month among teams.
func (b *Books) Chargeback(w http.ResponseWriter, r *http.Request) {
	q, now := r.URL.Query(), b.Control.Now().UTC()
	span, ok := MonthOf(w, q.Get("month"), now)
	if !ok {
		return
	}
	rule, err := chargeback.ParseRule(q.Get("rule"), q["share"])
	if err != nil {
		field := "rule"
		if len(q["share"]) > 0 {
			field = "share"
		}
		reply.FieldProblem(w, http.StatusBadRequest, field, "this rule does not exist",
			"write proportional, even, or fixed with a share=TEAM=WEIGHT for each team", err)
		return
	}
	if rule.Kind == chargeback.Fixed && auth.CallerOf(r).Role(identity.Everywhere) < identity.Viewer {
		reply.FieldProblem(w, http.StatusForbidden, "rule", "a rule of your own needs the role viewer of all teams",
			"leave --rule out: you see your teams by the usual rule", nil)
		return
	}
	v, err := b.chargeback(r.Context(), auth.CallerOf(r), span, rule)
	if errors.Is(err, errNoTeam) {
		reply.FieldProblem(w, http.StatusBadRequest, "share", "this rule does not exist",
			"scrimp teams lists the teams", err)
		return
	}
	if err != nil {
		Unread(w, "cannot read the ledger", err)
		return
	}
	if len(v.Statements) == 0 && len(v.Pools) == 0 {
		reply.Problem(w, http.StatusNotFound, "there are no costs in this month",
			"give another: scrimp costs shows who spent what", nil)
		return
	}
	v.Month, v.Rule, v.Over = span.Since.Format("2006-01"), string(rule.Kind), !span.Until.After(now)
	if v.Since, v.Until = span.Since, span.Until; !v.Over {
		v.Until = now
	}
	reply.JSON(w, v)
}

// chargeback divides the shared costs by the use of all teams, and returns the part that the caller may see.
func (b *Books) chargeback(ctx context.Context, caller identity.Caller, span charge.Span,
	rule chargeback.Rule) (client.Chargeback, error) {
	m := chargeback.NewMonth()
	v := client.Chargeback{Totals: []client.ChargebackTotal{}, Pools: []client.SharedCost{},
		Statements: []client.ChargebackOfTeam{}, Whole: caller.Role(identity.Everywhere) >= identity.Viewer}
	err := b.EachCharge(ctx, everyone, span, func(c charge.Charge) error {
		m.Add(&c)
		return nil
	})
	if err != nil {
		return v, err
	}
	fees, err := b.Fees(ctx, span.Since)
	if err != nil {
		return v, err
	}
	for _, f := range fees {
		spread, err := SpreadOf(f)
		if err != nil {
			return v, err
		}
		m.AddFee(f.Name, f.Amount, f.Currency, spread)
	}
	if err := b.checkTeams(m, rule); err != nil {
		return v, err
	}
	shares := map[lineKey][]client.ChargebackShare{}
	for _, d := range m.Divide(rule) {
		for _, p := range d.Parts {
			k := lineKey{p.Team, d.Pool.Currency}
			shares[k] = append(shares[k], client.ChargebackShare{Name: d.Pool.Name, Amount: p.Amount, Method: d.Method})
		}
		if v.Whole {
			v.Pools = append(v.Pools, client.SharedCost{Name: d.Pool.Name, Currency: d.Pool.Currency, Amount: d.Pool.Own,
				Divided: d.Pool.Own.Sub(d.Left), Left: d.Left, Method: d.Method})
		}
	}
	for _, a := range m.Teams() {
		if caller.Role(a.Name) < identity.Viewer {
			continue
		}
		s, err := b.statement(ctx, a, span, shares[lineKey{a.Name, a.Currency}])
		if err != nil {
			return v, err
		}
		v.Statements = append(v.Statements, s)
	}
	if v.Whole {
		v.Totals = totalsOf(&v)
	}
	return v, nil
}

var errNoTeam = errors.New("there is no such team, and it had no cost in the month")

// checkTeams rejects a share for an unknown team: a typo would otherwise misdirect the money.
func (b *Books) checkTeams(m *chargeback.Month, rule chargeback.Rule) error {
	for _, s := range rule.Shares {
		had := slices.ContainsFunc(m.Teams(), func(a *chargeback.Account) bool { return a.Name == s.Team })
		if !had && !b.HasTeam(s.Team) {
			return fmt.Errorf("%.60s: %w", s.Team, errNoTeam)
		}
	}
	return nil
}

// everyone may see all teams: a team's part of the shared costs depends on what the others used.
var everyone = identity.Caller{Grants: []identity.Grant{{Team: identity.Everywhere, Role: identity.Viewer}}}

func totalsOf(v *client.Chargeback) []client.ChargebackTotal {
	by := map[money.Currency]client.ChargebackTotal{}
	for _, s := range v.Statements {
		t := by[s.Currency]
		t.Own, t.Shared, t.Total = t.Own.Add(s.Own), t.Shared.Add(s.Shared), t.Total.Add(s.Total)
		by[s.Currency] = t
	}
	for _, p := range v.Pools {
		t := by[p.Currency]
		t.Left, t.Total = t.Left.Add(p.Left), t.Total.Add(p.Left)
		by[p.Currency] = t
	}
	list := []client.ChargebackTotal{}
	for _, c := range slices.Sorted(maps.Keys(by)) {
		t := by[c]
		t.Currency = c
		list = append(list, t)
	}
	return list
}

// statement builds the statement of a team in one currency.
func (b *Books) statement(ctx context.Context, a *chargeback.Account, span charge.Span,
	shares []client.ChargebackShare) (client.ChargebackOfTeam, error) {
	s := client.ChargebackOfTeam{Team: a.Name, Currency: a.Currency, Own: a.Own, Uses: map[client.Use]money.Amount{},
		Shares: reply.List(shares), Total: a.Own, Accrued: a.Phases[ledger.Accrued], Billed: a.Phases[ledger.Billed],
		Estimated: a.Phases[ledger.Estimated], Unlisted: a.Unlisted, Runs: len(a.Jobs)}
	for use, amount := range a.Uses {
		s.Uses[client.Use(use)] = amount
	}
	for _, p := range shares {
		s.Shared, s.Total = s.Shared.Add(p.Amount), s.Total.Add(p.Amount)
	}
	if saved, ok := a.Saved(); ok {
		s.OnDemand, s.Saved = &a.List, &saved
	}
	if per, ok := a.PerGPUHour(); ok {
		s.PerGPUHour = &per
	}
	s.GPUHours, _ = new(big.Rat).SetFrac(a.GPUTime, big.NewInt(int64(time.Hour))).Float64()
	err := b.runsOf(ctx, a, span, &s)
	return s, err
}

// worked sums the total cost of the runs that ended in the month, and the work they did.
type worked struct {
	cost  money.Amount
	units float64
}

func (k *worked) add(cost money.Amount, units float64) {
	if units > 0 {
		k.cost, k.units = k.cost.Add(cost), k.units+units
	}
}

// per returns the cost of that many units, if any were reported.
func (k *worked) per(units float64) *money.Amount {
	if k.units <= 0 {
		return nil
	}
	a, ok := money.Estimated(k.cost.Float() / k.units * units)
	if !ok {
		return nil
	}
	return &a
}

// runsOf adds the totals from the jobs themselves.
func (b *Books) runsOf(ctx context.Context, a *chargeback.Account, span charge.Span,
	s *client.ChargebackOfTeam) error {
	var all money.Amount
	for _, cost := range a.Jobs {
		all = all.Add(cost)
	}
	var epochs, samples worked
	err := b.EachJob(ctx, slices.Sorted(maps.Keys(a.Jobs)), func(j *core.Job) {
		lost := a.Lost(j.ID())
		for _, try := range j.Attempts() {
			if try.Taken() {
				s.LostToInterrupts = s.LostToInterrupts.Add(lost[try.ID()])
			}
		}
		if !j.State().Over() || !span.Has(j.Finished()) {
			return
		}
		if j.State() == core.Succeeded {
			s.Succeeded++
		}
		if j.Terms().Currency == a.Currency {
			cost := j.Spent(j.Finished())
			epochs.add(cost, j.EpochSeen())
			samples.add(cost, j.Metrics()["samples"])
		}
	})
	if s.Runs > 0 {
		s.PerRun = new(all.Over(s.Runs))
	}
	if s.Succeeded > 0 {
		s.PerSuccess = new(all.Over(s.Succeeded))
	}
	s.PerEpoch, s.PerMillion = epochs.per(1), samples.per(1e6)
	return err
}

// EachJob calls f with each job, live or archived.
func (b *Books) EachJob(ctx context.Context, names []string, f func(*core.Job)) error {
	for some := range slices.Chunk(names, exportTurn) {
		var away []string
		b.Control.ReadUncommitted(func(m *core.Machine) {
			for _, id := range some {
				if j, ok := m.Job(id); ok {
					f(j)
				} else {
					away = append(away, id)
				}
			}
		})
		if len(away) == 0 {
			continue
		}
		jobs, err := b.Control.ArchivedJobs(ctx, away...)
		if err != nil {
			return err
		}
		for _, id := range away {
			if j := jobs[id]; j != nil {
				f(j)
			}
		}
	}
	return nil
}

// SpreadOf returns the rule that divides a fee; nil: the rule of the statement.
func SpreadOf(f client.Fee) (*chargeback.Rule, error) {
	if f.Spread == "" && len(f.Shares) == 0 {
		return nil, nil //nolint:nilnil // no rule of its own
	}
	r, err := chargeback.ParseRule(f.Spread, f.Shares)
	return &r, err
}

// FeeOf reports whether a fee is due in the month that starts at the given time.
func FeeOf(f client.Fee, month time.Time) bool {
	text := month.Format("2006-01")
	return strings.Compare(f.Since, text) <= 0 && (f.Until == "" || strings.Compare(text, f.Until) <= 0)
}
