package savings

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/work/recommend"
	"scrimp/internal/work/waste"
)

// recommendBack is the span of costs that savings are computed from.
const recommendBack = 30 * 24 * time.Hour

// standardTarget is the share of the spending to save where a request names none.
const standardTarget = 0.25

// Recommend ranks what can be done to spend less, for each currency.
func (d *Service) Recommend(w http.ResponseWriter, r *http.Request) {
	c, team := auth.CallerOf(r), r.URL.Query().Get("team")
	target, err := targetOf(r.URL.Query().Get("target"))
	if err != nil {
		reply.FieldProblem(w, http.StatusBadRequest, "target", "this is not a share of the spending",
			"write one from 1% to 99%, such as 25%", err)
		return
	}
	if team != "" && c.Role(team) < identity.Viewer {
		unknownTeam(w, team)
		return
	}
	inputs, _, err := d.inputs(r, c, team, target)
	if err != nil {
		reports.Unread(w, "cannot read the ledger", err)
		return
	}
	var list []recommend.Plan
	for _, in := range inputs {
		list = append(list, recommend.Make(in))
	}
	if len(list) == 0 && team != "" && !d.HasTeam(team) {
		unknownTeam(w, team)
		return
	}
	if len(list) == 0 {
		reply.Problem(w, http.StatusNotFound, "nothing was spent in the last 30 days",
			"scrimp costs shows who spent what", nil)
		return
	}
	reply.JSON(w, list)
}

// targetOf parses a share such as 25%.
func targetOf(text string) (float64, error) {
	if text == "" {
		return standardTarget, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !strings.HasSuffix(text, "%") || !(n >= 1 && n <= 99) {
		return 0, fmt.Errorf("%.20q is not from 1%% to 99%%", text)
	}
	return n / 100, nil
}

// inputs returns the costs of the last 30 days, by currency, and how long of them the ledger knows.
func (d *Service) inputs(r *http.Request, c identity.Caller, team string, target float64) (list []*recommend.Input,
	known time.Duration, err error) {
	ctx := r.Context()
	f, err := d.read(ctx, c, recommendBack)
	if err != nil {
		return nil, 0, err
	}
	known = recommendBack
	if f.in.Began.After(f.in.Since) {
		known = f.in.Until.Sub(f.in.Began)
	}
	f.in.Team = team
	found := waste.Find(f.in).Findings
	span := charge.Span{Since: f.in.Since, Until: f.in.Until}
	by := map[money.Currency]*recommend.Input{}
	jobs := map[string]recommend.Job{}
	err = d.Books.EachCharge(ctx, c, span, func(x charge.Charge) error {
		if team != "" && x.Owner.Team != team {
			return nil
		}
		in := by[x.Currency]
		if in == nil {
			in = &recommend.Input{Since: span.Since, Until: span.Until, Currency: x.Currency, Jobs: jobs, Target: target}
			by[x.Currency] = in
		}
		jobs[x.Owner.Job] = recommend.Job{}
		in.Costs = append(in.Costs, costOf(&x))
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if err := d.knowJobs(ctx, jobs); err != nil {
		return nil, 0, err
	}
	for _, currency := range slices.Sorted(maps.Keys(by)) {
		in := by[currency]
		for i := range found {
			if x := &found[i]; x.Currency == currency && x.Waste != nil {
				addFinding(in, x)
			}
		}
		if in.Full32, err = d.full32(ctx, in.Costs); err != nil {
			return nil, 0, err
		}
		if err := d.play(r, in); err != nil {
			return nil, 0, err
		}
		list = append(list, in)
	}
	return list, known, nil
}

// knowJobs fills in what is known of the jobs.
func (d *Service) knowJobs(ctx context.Context, jobs map[string]recommend.Job) error {
	delete(jobs, "")
	return d.Books.EachJob(ctx, slices.Sorted(maps.Keys(jobs)), func(j *core.Job) { jobs[j.ID()] = jobOf(j) })
}

// costOf converts a charge.
func costOf(x *charge.Charge) recommend.Cost {
	v := recommend.Cost{Job: x.Owner.Job, Series: x.Name, Instance: x.Owner.Instance, SKU: x.SKU, Region: x.Region,
		Capacity: string(x.Capacity), Use: recommend.Use(x.Use), Storage: x.Category == ledger.Storage,
		Reserved: x.Rule == state.ReservedRule, Due: x.Rule == market.RuleMinimum, Begin: x.Begin, Amount: x.Amount}
	if x.Timed && x.Category == ledger.Compute {
		v.Time = x.Time
		if v.Listed = x.ListPrice.Known; v.Listed {
			v.List = x.ListPrice.Rate.Until(x.Time)
		}
	}
	return v
}

func jobOf(j *core.Job) recommend.Job {
	v := recommend.Job{Saves: j.Terms().Saves, Deadline: !j.Terms().Deadline.IsZero(), SaveCost: j.SaveCost()}
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			if k.Taken() {
				v.Interruptions++
			}
		}
	}
	return v
}

// addFinding adds what the waste report says of jobs on too large machines, and of volumes.
func addFinding(in *recommend.Input, x *waste.Finding) {
	switch x.Kind {
	case waste.OrphanVolume:
		in.Orphans = in.Orphans.Add(*x.Waste)
	case waste.Oversized:
		at := slices.IndexFunc(in.Costs, func(c recommend.Cost) bool {
			return c.Time > 0 && slices.Contains(x.Jobs, c.Job)
		})
		if at >= 0 {
			c := &in.Costs[at]
			in.Oversized = append(in.Oversized, recommend.Oversized{Series: c.Series, SKU: c.SKU, Capacity: c.Capacity,
				Cost: x.Cost, Waste: *x.Waste})
		}
	default: // idle machines and reservations are in the costs
	}
}
