// Package terms derives from a job file what the core needs to know of a job.
package terms

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/hours"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Standard holds the defaults of a job file. Durations are wall time.
var Standard = spec.Default()

// unknownStart is the assumed wall time from the launch of a machine to a restored program, if engines state none.
const unknownStart = 3 * time.Second

// Start returns the expected wall time from the launch of a machine to a restored program: the longest of the engines
// that the job may use, because a deadline has to survive a move to any of them. starts holds it by name of engine.
func Start(j spec.Job, starts map[string]time.Duration) (longest time.Duration) {
	for _, place := range j.Places() {
		name, _, _ := strings.Cut(place, "/")
		longest = max(longest, starts[name])
	}
	if longest == 0 {
		for _, start := range starts {
			longest = max(longest, start)
		}
	}
	return cmp.Or(longest, unknownStart)
}

// Of returns the terms of a job submitted at now, in market time. starts holds the expected start of a machine by name
// of engine, in wall time.
func Of(j spec.Job, now time.Time, stretch func(time.Duration) time.Duration,
	starts map[string]time.Duration) core.Terms {
	t := core.Terms{
		Name: j.Name, JobKind: j.Kind, Session: j.Session, Nodes: j.MostNodes(), Priority: 1,
		Promise:  cmp.Or(j.Promise, Standard.Promise),
		Currency: money.USD,
		Owner: ledger.Owner{Team: j.Team, Project: j.Project, Environment: j.Environment,
			ModelVersion: j.ModelVersion, Tags: j.Tags},
		Deadline: j.Deadline.Resolve(now), GPUHours: j.Budget.GPUHours, WallClock: time.Duration(j.Budget.WallClock),
		DeadlineFirst: j.First == "deadline",
		Steps:         j.Work.Steps, Work: time.Duration(j.Work.Time), Restart: stretch(Start(j, starts)),
		Grace: stretch(Grace(j)),
		Saves: j.Checkpoint.Dir != "", IdleLimit: stretch(time.Duration(j.Idle)), MaxRetries: Standard.Retry.Max,
		RetryCodes: j.Retry.Codes, Notify: !j.Notify.IsZero(),
		Need: Need(j),
	}
	if j.FewestNodes() > 1 {
		t.Need.Machines = j.FewestNodes()
	}
	if j.FewestNodes() < j.MostNodes() {
		t.LeastNodes = j.FewestNodes()
	}
	if j.Window != "" {
		t.Window, _ = hours.Parse(j.Window) // validated at submission
	}
	switch j.Priority {
	case "critical":
		t.Priority = 2
	case "low":
		t.Priority = 0
	}
	t.Unpreemptible = j.Preemptible != nil && !*j.Preemptible
	if j.Retry.Max > 0 {
		t.MaxRetries = j.Retry.Max
	}
	if j.Budget.Dollars != nil {
		t.Budget, t.HasBudget = *j.Budget.Dollars, true
	}
	for _, d := range j.Data {
		if d.Stream {
			t.Streams = append(t.Streams, d.Name)
		}
	}
	t.Transfer, t.Bringing = time.Duration(j.Checkpoint.MoveTime), stretch(Bringing(j))
	if m := j.Checkpoint.MoveCost; m != nil {
		t.Carry = *m
	}
	if i := j.Checkpoint.Interval; i != "" && i != "auto" {
		d, _ := spec.ParseDuration(i) // validated at submission
		t.Interval = stretch(d)
	}
	t.Metric = policy.Metric{Name: j.Metric.Name, Maximize: j.Metric.Goal == "maximize", Patience: j.Metric.Patience,
		MinDelta: j.Metric.MinDelta}
	if j.Metric.Target != nil {
		t.Metric.Target, t.Metric.HasGoal = *j.Metric.Target, true
	}
	return t
}

// Need returns the machines that the job needs, with its alternatives and its ladder.
func Need(j spec.Job) plan.Need {
	n := plan.Need{Requirements: asks(j.Resources), MaxRate: j.MaxPrice}
	if p := j.Work.Parallel; p != nil {
		n.Parallel = *p
	}
	n.Engines, n.Image = j.Places(), j.Image
	model := footprint(j)
	n.Footprint = withoutStated(model, j.Resources)
	for i, v := range j.AnyOf {
		if v.Place() {
			continue
		}
		w := plan.Variant{Name: Variant(j, i), Requirements: n.Requirements, Throughput: v.Throughput}
		if !reflect.ValueOf(v.Resources).IsZero() {
			w.Requirements = asks(v.Resources)
			w.Engines = n.Engines
			w.Footprint = withoutStated(model, v.Resources)
		}
		if len(v.Args) > 0 || len(v.Env) > 0 { // it trains in another way, with unknown needs
			w.Footprint = plan.Footprint{}
		}
		w.Image = cmp.Or(v.Image, n.Image)
		if v.Engine != "" {
			w.Engines = []string{v.Engine}
		}
		n.Variants = append(n.Variants, w)
	}
	for _, r := range j.Ladder {
		rung := plan.Rung{Zones: r.Zones, Use: r.Use, MaxRate: r.MaxPrice, For: time.Duration(r.For), Failures: r.Failures}
		if r.Capacity != "" && r.Capacity != spec.AnyCapacity {
			rung.Capacity = []market.Capacity{market.Capacity(r.Capacity)}
		}
		n.Ladder = append(n.Ladder, rung)
	}
	return n
}

// Variant names an alternative by its name, or by its index.
func Variant(j spec.Job, i int) string {
	if name := j.AnyOf[i].Name; name != "" {
		return name
	}
	return fmt.Sprintf("any_of[%d]", i)
}

func asks(r spec.Resources) plan.Requirements {
	kind, count := r.GPUs()
	a := plan.Requirements{CPUs: r.CPUs.Min, MaxCPUs: r.CPUs.Max, Accelerator: kind, Accelerators: count.Min,
		Memory: int64(r.Memory.Min), MaxMemory: int64(r.Memory.Max), MaxAccelerators: count.Max, Zones: r.Zones}
	for _, c := range r.Capacity {
		a.Capacity = append(a.Capacity, market.Capacity(c))
	}
	return a
}

// Grace returns how long the program may take to save after a drain.
func Grace(j spec.Job) time.Duration {
	if j.Grace > 0 {
		return time.Duration(j.Grace)
	}
	return time.Duration(Standard.Grace)
}
