package pipelinefile

import (
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/work/schedule"
)

// schedule reads when the pipeline runs: a line of cron, or a map with one.
func (r *reader) schedule(n *yaml.Node) {
	y := &schedule.Spec{}
	r.f.Schedule = y
	if n.Kind == yaml.ScalarNode {
		y.Cron = n.Value
	} else if n.Kind != yaml.MappingNode {
		r.wrong(n, "schedule", "is no line of cron and no map",
			`write schedule: "0 3 * * *", or cron, zone and budget below it`)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if v.Kind != yaml.ScalarNode {
			r.wrong(v, "schedule."+key.Value, "is no single value", "write one value behind it")
			continue
		}
		r.ofSchedule(y, key, v)
	}
	dated := *y // until is a time of the market, which may have another clock
	dated.Until = time.Time{}
	if err := dated.Check(r.now); err != nil {
		r.wrong(n, "schedule", err.Error(), "")
	}
}

// ofSchedule reads one field of a schedule.
func (r *reader) ofSchedule(y *schedule.Spec, key, v *yaml.Node) {
	field := "schedule." + key.Value
	switch key.Value {
	case "cron":
		y.Cron = v.Value
	case "zone":
		y.Zone = v.Value
	case "budget":
		amount, err := spec.ParseAmount(v.Value)
		if err != nil || amount.Sign() <= 0 {
			r.wrong(v, field, "is no amount above zero", "write what all runs together may cost, as budget: $200")
		}
		r.f.Total = &amount
	case "runs":
		y.Runs = r.whole(v, field, 1, schedule.MaxRuns)
	case "until":
		var err error
		if y.Until, err = time.Parse(time.RFC3339, v.Value); err != nil {
			if y.Until, err = time.Parse(time.DateOnly, v.Value); err != nil {
				r.wrong(v, field, "is no time", "write until: 2027-03-31, or 2027-03-31T18:00:00Z")
			}
		}
	case "catch_up":
		var does bool
		if v.Decode(&does) != nil {
			r.wrong(v, field, "is neither true nor false", "write catch_up: false to skip what was due while nothing ran")
		}
		y.NoCatchUp = !does
	default:
		r.wrong(key, field, "is no field of a schedule", "write cron, zone, budget, runs, until, catch_up")
	}
}
