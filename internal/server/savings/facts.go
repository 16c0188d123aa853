package savings

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/incident"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/reports"
	"scrimp/internal/wire/telemetry"
	workgroups "scrimp/internal/work/groups"
	"scrimp/internal/work/waste"
)

const (
	// learn is the length of history that the rules for idle machines and volumes compare with.
	learn = 28 * 24 * time.Hour
	// runsOfSeries and runsInAll bound the runs whose telemetry one request reads.
	runsOfSeries, runsInAll = 10, 200
)

// facts is the input of a search.
type facts struct {
	in        waste.Input
	teams     map[string]bool   // that have costs; a job's team need not be registered where there is none
	recurring int               // runs of recurring jobs whose telemetry was read
	pipelines map[string]string // the identity of each group that is a pipeline
}

// read collects what the caller may see.
func (d *Service) read(ctx context.Context, c identity.Caller, back time.Duration) (*facts, error) {
	until := d.now()
	f := &facts{in: waste.Input{Since: until.Add(-back), Until: until, HasTeams: d.HasTeams()}, teams: map[string]bool{}}
	d.fleet(f, c)
	groups, err := d.groups(ctx, f)
	if err != nil {
		return nil, err
	}
	began, _, err := d.Books.Began(ctx)
	if err != nil {
		return nil, err
	}
	f.in.Began = began
	var past []incident.Row
	span := charge.Span{Since: f.in.Since.Add(-learn).Truncate(time.Hour)}
	err = d.Books.EachCharge(ctx, c, span, func(x charge.Charge) error {
		if f.in.Began.IsZero() || x.Begin.Before(f.in.Began) {
			f.in.Began = x.Begin
		}
		f.teams[x.Owner.Team] = true
		if !x.Corrects {
			past = append(past, reports.IncidentRow(&x, until))
		}
		f.in.Rows = append(f.in.Rows, rowOf(&x, groups))
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.in.Before = within(f.in.Rows, time.Time{}, f.in.Since)
	f.in.Rows = within(f.in.Rows, f.in.Since, until)
	answers, err := d.Answers(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range incident.FindWith(past, &incident.Settings{Answers: answers, Until: until}) {
		l := waste.Leftover{Instance: a.About, Since: a.Since, Until: a.Until}
		switch {
		case !a.Until.IsZero() && a.Until.Before(f.in.Since):
		case a.Kind == incident.IdleMachine:
			f.in.IdleMachines = append(f.in.IdleMachines, l)
		case a.Kind == incident.OrphanVolume:
			f.in.Volumes = append(f.in.Volumes, l)
		}
	}
	return f, d.measure(ctx, f)
}

// now returns the present market time: no earlier than the last event, whose costs count.
func (d *Service) now() time.Time {
	now := d.Control.Now()
	d.Control.Read(func(m *core.Machine) {
		if m.Now().After(now) {
			now = m.Now()
		}
	})
	return now.UTC()
}

// rowOf converts a charge. Groups says what each group is a run of.
func rowOf(x *charge.Charge, groups map[string]waste.Group) waste.Row {
	o := &x.Owner
	r := waste.Row{Begin: x.Begin, End: x.End, Amount: x.Amount, Currency: x.Currency, Team: o.Team, Project: o.Project,
		User: x.User, Group: o.Group, Job: o.Job, Instance: o.Instance, Provider: x.Provider, Region: x.Region, SKU: x.SKU,
		Capacity: string(x.Capacity), Storage: x.Category == ledger.Storage, Reserved: x.Rule == state.ReservedRule,
		Part: x.Shared}
	r.Due = x.Rule == market.RuleMinimum
	if !x.Timed && !r.Reserved { // its hour is that of the booking: it belongs to no span
		r.End = r.Begin
	}
	if x.Timed && (x.Category == ledger.Compute || x.Category == ledger.Fixed) {
		r.Time = x.Time
	}
	r.Idle = !r.Reserved && o.Job == "" && x.Use == ledger.Idle && r.Time > 0
	switch of := groups[o.Group]; {
	case o.Group == "":
		r.Series = x.Name
	case of.Schedule != "":
		r.Series = of.Schedule + "/" + x.Name
	}
	return r
}

// within returns the parts of the rows between two times.
func within(rows []waste.Row, since, until time.Time) (list []waste.Row) {
	for _, r := range rows {
		if part, ok := r.Between(since, until); ok {
			list = append(list, part)
		}
	}
	return list
}

// groups returns what each group is a run of, archived or not.
func (d *Service) groups(ctx context.Context, f *facts) (map[string]waste.Group, error) {
	archived, err := d.Control.AllGroups(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string]waste.Group{}
	for _, g := range archived {
		if g.Kind != workgroups.Pipeline || g.Title == "" {
			continue
		}
		x := waste.Group{Pipeline: strings.Join([]string{g.Team, g.Project, g.Title}, "/")}
		if schedule := state.Submitted(g.Name); schedule != g.Name {
			x.Schedule = schedule
		}
		of[g.Name] = x
	}
	for name, pipeline := range f.pipelines {
		of[name] = waste.Group{Pipeline: pipeline}
	}
	for _, s := range f.in.Schedules {
		for g := range s.Groups {
			of[g] = waste.Group{Schedule: s.Name, Pipeline: s.Pipeline}
		}
	}
	return of, nil
}

// pipelineOf identifies the pipeline of a group: its name within the project of its team; "": it is none.
func pipelineOf(t *state.GroupTerms) string {
	if t == nil || t.Kind != workgroups.Pipeline || t.Member == nil || t.Member.Name == "" {
		return ""
	}
	return strings.Join([]string{t.Owner.Team, t.Owner.Project, t.Member.Name}, "/")
}

// fleet reads machines, offers, reservations and schedules from the state of the core.
func (d *Service) fleet(f *facts, c identity.Caller) {
	var ranks []rank
	f.pipelines, f.in.Paid = map[string]string{}, map[string]time.Time{}
	d.Control.Read(func(m *core.Machine) {
		for _, i := range m.State().Instances() {
			if l := m.State().Listing(i.Machine().Offer); l != nil && l.Offer().Billing.Minimum > 0 {
				f.in.Paid[i.ID()] = i.From().Add(l.Offer().Billing.Minimum)
			}
			if i.Live() || i.Lost() {
				v, of := machine(m, i)
				f.in.Machines, ranks = append(f.in.Machines, v), append(ranks, of)
			}
		}
		for o, l := range m.Sale() {
			if o.Reserved.Count > 0 {
				if c.Role(o.Reserved.Team) >= identity.Viewer {
					f.in.Reservations = append(f.in.Reservations, reservation(m, &o, f.in.Since, f.in.Until))
				}
				continue
			}
			if l.Quote.Priced {
				f.in.Offers = append(f.in.Offers, waste.Offer{Name: string(o.ID), Provider: o.Provider, Region: o.Region,
					SKU: o.Machine, Capacity: string(o.Capacity), CPUs: o.CPUs, Memory: int64(o.Memory),
					Accelerator: o.Accelerator, Accelerators: o.Accelerators, Rate: l.Quote.Rate, Currency: o.Currency})
			}
		}
		for _, g := range m.State().Groups() {
			if g.Schedule != nil {
				f.in.Schedules = append(f.in.Schedules, recurring(m, g))
			} else if p := pipelineOf(&g.Terms); p != "" {
				f.pipelines[g.Name] = p
			}
		}
	})
	d.silent(f.in.Machines, ranks)
}

// reservation converts a reservation. Its price on demand is that of the same machine in the same region.
func reservation(m *core.Machine, o *market.Offer, since, until time.Time) waste.Reservation {
	r := &o.Reserved
	v := waste.Reservation{Offer: string(o.ID), Until: r.Until, Paid: r.Committed(until).Sub(r.Committed(since))}
	hours := r.Until.Sub(r.From) * time.Duration(max(1, r.Count))
	if a, ok := waste.Scaled(r.Paid, time.Hour, hours); ok && a.Big().IsInt64() {
		v.Rate = money.Rate(a.Big().Int64())
	}
	for x, l := range m.Sale() {
		if x.Machine == o.Machine && x.Provider == o.Provider && x.Region == o.Region && x.Currency == o.Currency &&
			x.Capacity == market.OnDemand && x.Reserved.Count == 0 && l.Quote.Priced {
			v.OnDemand = l.Quote.Rate
		}
	}
	return v
}

// rank is the task of a machine; the zero value: it has none.
type rank struct {
	attempt string
	node    int
}

// machine converts a machine, and returns its task.
func machine(m *core.Machine, i *state.Instance) (v waste.Machine, of rank) {
	span, idle := i.Idle()
	v = waste.Machine{Instance: i.ID(), Keep: span.Keep, Rate: i.PresentRate(),
		Idle: idle && i.Release() == "" && !i.Disowned(), Undecided: i.Disowned(),
		Unknown: i.Disowned() || i.Stray() && i.Release() == ""}
	if a := m.State().Seated(i); a != nil {
		v.Job = a.Job()
		if k := a.On(i.ID()); k != nil && i.Phase() != state.Provisioning {
			of = rank{a.ID(), k.Rank()}
		}
	}
	if !i.Missing().IsZero() {
		v.Silent, v.Missing = i.Missing(), true
	}
	return v, of
}

// silent adds when the agents of machines with a task were last heard, if that is too long ago, and drops machines that
// their engine has missed for less. It counts by the wall clock, since a market clock may be faster. An agent without a
// task has nothing to report.
func (d *Service) silent(list []waste.Machine, ranks []rank) {
	now, clock := time.Now(), d.Control.Clock()
	for i, of := range ranks {
		if list[i].Missing {
			if now.Sub(clock.ToWall(list[i].Silent)) < waste.SilentFor {
				list[i].Silent, list[i].Missing = time.Time{}, false
			}
			continue
		}
		if of.attempt == "" {
			continue
		}
		if l, ok := d.Control.LatestOf(of.attempt, of.node); ok && now.Sub(l.Heard) >= waste.SilentFor {
			list[i].Silent = clock.ToMarket(l.Heard)
		}
	}
}

// recurring converts a schedule.
func recurring(m *core.Machine, g *state.Group) waste.Recurring {
	v := waste.Recurring{Name: g.Name, Open: !g.Closed(), Groups: map[string]bool{}, Bad: map[string]bool{},
		Pipeline: pipelineOf(g.Terms.Run)}
	counts := true
	for _, x := range slices.Backward(g.Schedule.Runs) {
		if x.Group == "" {
			continue
		}
		v.Groups[x.Group] = true
		run := m.State().Group(x.Group)
		if run == nil || run.Phase != state.GroupOver || !counts {
			continue
		}
		if counts = !run.Succeeded(); counts {
			v.Failed++
			v.Bad[x.Group] = true
		}
	}
	return v
}

// measure reads the telemetry of the newest runs of recurring jobs.
func (d *Service) measure(ctx context.Context, f *facts) error {
	rows := map[string]*waste.Row{} // the first row of each run; nil: it ran on several machine types
	bySeries := map[string][]string{}
	for i := len(f.in.Rows) - 1; i >= 0; i-- {
		r := &f.in.Rows[i]
		if r.Series == "" || r.Job == "" || r.Time <= 0 || r.Idle {
			continue
		}
		first, known := rows[r.Job]
		switch {
		case !known:
			rows[r.Job] = r
			k := r.Team + "\x00" + r.Series
			bySeries[k] = append(bySeries[k], r.Job)
		case first != nil && (first.SKU != r.SKU || first.Capacity != r.Capacity):
			rows[r.Job] = nil
		}
	}
	var names []string
	for _, k := range slices.Sorted(maps.Keys(bySeries)) {
		if jobs := bySeries[k]; len(jobs) >= waste.RunsLeast {
			names = append(names, jobs[:min(len(jobs), runsOfSeries)]...)
		}
	}
	names = slices.DeleteFunc(names, func(job string) bool { return rows[job] == nil })
	names = names[:min(len(names), runsInAll)]
	f.recurring = len(names)
	var jobs []*core.Job
	if err := d.Books.EachJob(ctx, names, func(j *core.Job) {
		if j.State().Over() {
			jobs = append(jobs, j.Copy())
		}
	}); err != nil {
		return err
	}
	for _, j := range jobs {
		t, err := d.Telemetry(ctx, j)
		if err != nil {
			return err
		}
		if t != nil {
			f.in.Runs = append(f.in.Runs, runOf(j.ID(), rows[j.ID()], t))
		}
	}
	return nil
}

func runOf(job string, r *waste.Row, t *receipt.Telemetry) waste.Run {
	v := waste.Run{Job: job, Team: r.Team, Series: r.Series, SKU: r.SKU, Capacity: r.Capacity, Seconds: t.Seconds,
		GPUs: t.GPUs}
	if x, ok := t.Figure(telemetry.GPU); ok {
		v.GPU = &x.Average
	}
	if x, ok := t.Figure(telemetry.TaskCPU); ok {
		v.Cores = &x.Average
	}
	if x, ok := t.Figure(telemetry.TaskMemory); ok {
		v.Memory = &x.Peak
	}
	v.GPUMemory, v.GPUEach = t.GPUHeld, t.GPUMemory
	return v
}
