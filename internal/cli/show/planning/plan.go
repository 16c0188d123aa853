// Package planning formats a job's predicted cost and finish, and the decisions about it with their reasons.
package planning

import (
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/view/convert"
)

// Plan is a predicted job for people.
type Plan struct {
	api.Plan
	Spot bool `json:"-"` // some offers may be interrupted
}

// OfArray returns the plan of a member with the totals of its array.
func (v Plan) OfArray(members, atOnce int, budget *money.Amount) Plan {
	v.Array = &api.ArrayPlan{Members: members, AtOnce: atOnce, Budget: budget}
	if v.Known && v.CostUSD != nil && !v.never() {
		v.Array.CostUSD = new(float64(members) * v.CostUSD[1])
	}
	return v
}

// ofArray formats the totals of an array.
func ofArray(a *api.ArrayPlan) string {
	items := []string{draw.Count(a.Members, "member") + fmt.Sprintf(" like this one, at most %d at once", a.AtOnce)}
	if a.CostUSD != nil {
		items = append(items, "about "+show.USD(*a.CostUSD)+" together")
	}
	if a.Budget != nil {
		items = append(items, "at most "+money.Short(*a.Budget, money.USD)+" together, from which each gets a share")
	}
	return strings.Join(items, "; ")
}

// Text formats the plan for people.
func (v Plan) Text(p show.Place) string {
	var b strings.Builder
	head := v.Name + " on market " + v.Market
	if v.Speed != 1 {
		head += ", " + draw.SimulatedClock(v.Speed)
	}
	if !v.Feasible {
		head += ": NOT FEASIBLE"
	}
	b.WriteString(draw.Wrap("", head, p.Columns()))
	if v.WorkS != nil && v.WorkFrom != "" {
		p.Fact(&b, "work", "%s, %s", show.Seconds(*v.WorkS), v.WorkFrom)
	}
	v.costs(&b, p)
	if !v.never() {
		v.odds(&b, p)
	}
	switch {
	case v.Take != "":
		p.Fact(&b, "begins on", "%s: %s", show.MachinesOf(v.Nodes, v.Take), why(plan.Reason(v.Why)))
	case v.WaitsFor != "":
		v.waits(&b, p)
	case v.never():
		p.Fact(&b, "begins", "not: %s", why(plan.Reason(v.Why)))
	case v.opens():
		p.Fact(&b, "begins", "in %s, when its window %s opens", show.Seconds(*v.BeginS), v.Window)
	default:
		p.Fact(&b, "begins", "when it can: %s", why(plan.Reason(v.Why)))
	}
	if v.Take != "" && v.Gets != nil {
		p.Fact(&b, "has", "%s", gets(convert.To[plan.Gets](*v.Gets)))
	}
	for _, r := range v.Rejected {
		p.Fact(&b, "", "not %s: %s%s", r.Offer, show.Words(r.Why), besides(r.ReadsUSD))
	}
	for _, e := range v.Engines {
		p.Fact(&b, "on "+e.Engine, "%s", onEngine(e))
	}
	if v.Array != nil {
		p.Fact(&b, "array", "%s", ofArray(v.Array))
	}
	for _, r := range v.Reasons {
		p.Fact(&b, "note", "%s", r)
	}
	return b.String()
}

// besides says what reading the data on an offer costs; nil: nothing, or it is unknown.
func besides(reads *float64) string {
	if reads == nil {
		return ""
	}
	return "; " + show.USD(*reads) + " for reading the data"
}

// OfCommand adds notes for a command without a job file: the cost of an interruption, and where the command's files
// stay.
func (v Plan) OfCommand(folder string) Plan {
	if v.Take == "" {
		return v
	}
	notes := slices.Clone(v.Reasons)
	if v.Spot {
		text := fmt.Sprintf("an interruption costs what %s has done since it saved to $SCRIMP_CHECKPOINT_DIR (%s); if it "+
			"saves nothing there it starts from the beginning", v.Name, folder)
		if v.RateUSD != nil {
			text += fmt.Sprintf(", at %s for each hour that it ran", show.USD(*v.RateUSD))
		}
		notes = append(notes, text)
	}
	v.Reasons = slices.Concat(notes, []string{"scrimp keeps the files that it writes in its work folder, up to 1 GiB, " +
		"newest first: scrimp get copies them here"})
	return v
}

// never reports whether the job ends as soon as it starts.
func (v Plan) never() bool { return v.FinishS != nil && v.FinishS[2] <= 0 }

// opens reports whether the job waits for the next opening of its window.
func (v Plan) opens() bool { return v.BeginS != nil && plan.Reason(v.Why) == plan.Closed }

// costs writes the job's expected and maximum cost.
func (v Plan) costs(b *strings.Builder, p show.Place) {
	known := v.Known && !v.never()
	switch {
	case v.never():
		p.Fact(b, "cost", "nothing: the job ends before it begins")
	case v.Known && v.CostUSD != nil:
		cost := span(show.USD(v.CostUSD[0]), show.USD(v.CostUSD[2]))
		if strings.Contains(cost, " to ") {
			cost += ", median " + show.USD(v.CostUSD[1])
		}
		p.Fact(b, "cost", "%s", cost)
		if m := v.MarginalUSD; m != nil && *m != *v.CostUSD {
			p.Fact(b, "marginal", "%s: what the job adds; the rest is paid for machines of your own whether it runs or not",
				span(show.USD(m[0]), show.USD(m[2])))
		}
		if r := v.ReadsUSD; r != nil {
			p.Fact(b, "data", "%s besides, for reading data from another region, once on each machine",
				span(show.USD(r[0]), show.USD(r[2])))
		}
	case v.Known:
		p.Fact(b, "cost", "unknown: the simulated runs come to no end")
	case v.Session != "":
		p.Fact(b, "cost", "what its machine costs an hour, for as long as the session is open")
	default:
		p.Fact(b, "cost", "unknown until the first steps: set work.time, or measure it with scrimp profile")
	}
	switch {
	case v.OnDemandUSD != nil && known:
		p.Fact(b, "on-demand", "%s: same work on %s", show.USD(*v.OnDemandUSD), show.MachinesOf(v.Nodes, v.OnDemandOffer))
	case known:
		p.Fact(b, "on-demand", "unknown: no on-demand machine on offer can do this work")
	}
	v.limits(b, p)
}

// limits writes what stops the job.
func (v Plan) limits(b *strings.Builder, p show.Place) {
	if v.WorstUSD != nil {
		p.Fact(b, "at most", "%s: the budget stops it, after a checkpoint", show.USD(*v.WorstUSD))
	}
	if v.WallClockS != nil {
		p.Fact(b, "at most", "%s from its first machine on: wall_clock stops it, after a checkpoint",
			show.Seconds(*v.WallClockS))
	}
	if v.GPUHours != nil {
		p.Fact(b, "at most", "%.4g GPU-hours: gpu_hours stops it, after a checkpoint", *v.GPUHours)
	}
}

// waits writes when an own machine becomes free for the job.
func (v Plan) waits(b *strings.Builder, p show.Place) {
	why := "none of it is for sale now"
	if v.InUse > 0 {
		why = draw.Count(v.InUse, "machine") + " of it in use"
	}
	if v.BeginS == nil {
		p.Fact(b, "begins", "when %s is free: %s", v.WaitsFor, why)
		return
	}
	p.Fact(b, "begins", "in %s, when %s is expected to be free: %s", show.Seconds(*v.BeginS), v.WaitsFor, why)
}

// onEngine formats the job's cost on the engine, in full and marginal, and its finish.
func onEngine(e api.EnginePlan) string {
	switch {
	case e.Error != "":
		return "not known: the engine does not answer: " + e.Error
	case e.CostUSD == nil:
		return "not done there: " + why(plan.Reason(e.Why))
	}
	text := span(show.USD(e.CostUSD[0]), show.USD(e.CostUSD[2]))
	if *e.CostUSD != *e.MarginalUSD {
		text += " in full, " + span(show.USD(e.MarginalUSD[0]), show.USD(e.MarginalUSD[2])) + " marginal"
	}
	text += "; done in " + span(show.Seconds(e.FinishS[0]), show.Seconds(e.FinishS[2]))
	if e.InTime != nil {
		text += fmt.Sprintf(", in time in %.0f %%", *e.InTime*100)
	}
	switch {
	case e.WaitsFor != "" && e.BeginS == nil:
		text += ", once a machine is free"
	case e.WaitsFor != "":
		text += ", a machine is free in " + show.Seconds(*e.BeginS)
	}
	return text
}

// odds writes the job's finish, the probability of the deadline, and the interruptions.
func (v Plan) odds(b *strings.Builder, p show.Place) {
	if v.FinishS != nil {
		p.Fact(b, "finish", "in %s", span(show.Seconds(v.FinishS[0]), show.Seconds(v.FinishS[2])))
	}
	switch {
	case v.InTime == nil && v.DeadlineS != nil:
		p.Fact(b, "deadline", "in %s; the chance to meet it is unknown as long as the work is", show.Seconds(*v.DeadlineS))
	case v.InTime != nil:
		p.Fact(b, "deadline", "met in %.0f %% of %d simulated runs", *v.InTime*100, v.Runs)
	}
	if v.Interrupts != nil {
		p.Fact(b, "interruptions", "%.1f expected", *v.Interrupts)
	}
}

// span formats a range, or one value if both ends look the same.
func span(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}
