// Package trigger reads the parts of a pipeline file that say when runs and stages begin: the schedule with its
// conditions, and on_drift and warm_start of a stage.
package trigger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/retrain"
	"scrimp/internal/work/schedule"
)

// Reader reads parts of a file, and reports their problems.
type Reader struct {
	Wrong func(n *yaml.Node, field, cause, fix string)
	Note  func(format string, a ...any)
	Now   time.Time
}

// Schedule is the schedule of a file.
type Schedule struct {
	Spec  *schedule.Spec
	Total *money.Amount // budget of all runs; nil: not given
	at    *yaml.Node
}

// Schedule reads the schedule: a cron line, or a map with one.
func (r *Reader) Schedule(n *yaml.Node) (s Schedule) {
	y := &schedule.Spec{}
	s.Spec, s.at = y, n
	if n.Kind == yaml.ScalarNode {
		y.Cron = n.Value
	} else if n.Kind != yaml.MappingNode {
		r.wrong(n, "schedule", "is no line of cron and no map",
			`write schedule: "0 3 * * *", or cron, zone and budget below it`)
		return s
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if v.Kind != yaml.ScalarNode && key.Value != retrain.WhenItPays {
			r.wrong(v, "schedule."+key.Value, "is no single value", "write one value behind it")
			continue
		}
		r.ofSchedule(&s, key, v)
	}
	r.together(y, n)
	if y.Cron == "" && y.When.Data != nil {
		y.Cron = retrain.Every
		r.Note("schedule has no cron: the server looks for new data each 15 minutes")
	}
	dated := *y // until is in market time, which may use another clock
	dated.Until = time.Time{}
	if err := dated.Check(r.Now); err != nil {
		r.wrong(n, "schedule", err.Error(), "")
	}
	return s
}

// scheduleFields are the fields of a schedule.
var scheduleFields = []string{"cron", "zone", "budget", "runs", "until", "catch_up", "notify", retrain.OnData,
	"at_least", retrain.NotBefore, "by", retrain.WhenItPays}

// until reads a time or a day.
func (r *Reader) until(v *yaml.Node, field string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, v.Value); err == nil {
			return at
		}
	}
	r.wrong(v, field, "is not a time", "write until: 2027-03-31, or 2027-03-31T18:00:00Z")
	return time.Time{}
}

// ofSchedule reads one field of a schedule.
func (r *Reader) ofSchedule(s *Schedule, key, v *yaml.Node) {
	y := s.Spec
	field := "schedule." + key.Value
	switch key.Value {
	case "cron":
		y.Cron = v.Value
	case "zone":
		y.Zone = v.Value
	case "budget":
		amount, err := spec.ParseBudget(v.Value)
		if err != nil {
			r.wrong(v, field, err.Error(), "write what all runs together may cost, as budget: $200")
		}
		s.Total = &amount
	case "runs":
		y.Runs = r.whole(v, field, 1, schedule.MaxRuns)
	case "until":
		y.Until = r.until(v, field)
	case "catch_up":
		var does bool
		if v.Decode(&does) != nil {
			r.wrong(v, field, "is neither true nor false", "write catch_up: false to skip what was due while nothing ran")
		}
		y.NoCatchUp = !does
	case "notify":
		if y.Notify = v.Value; !spec.IsHook(v.Value) {
			r.wrong(v, field, fmt.Sprintf("is %.60q", v.Value), "write the http or https URL of a webhook, which gets the "+
				"comparison of each week")
		}
	case retrain.OnData, "at_least", retrain.NotBefore, "by", retrain.WhenItPays:
		r.condition(&y.When, key, v, field)
	case "on_drift":
		r.wrong(key, field, "is a field of a stage", "write it into the stage that trains")
	default:
		r.wrong(key, field, "is no field of a schedule", "write "+strings.Join(scheduleFields, ", "))
	}
}

// condition reads one field of the conditions of a schedule.
func (r *Reader) condition(c *retrain.Conditions, key, v *yaml.Node, field string) {
	switch key.Value {
	case retrain.OnData:
		if isNull(v) || v.Value == "" {
			r.wrong(v, field, "is no path", "write a folder of the server or a bucket, such as on_data: s3://bucket/new")
		}
		data(c).Path = v.Value
	case "at_least":
		data(c).AtLeast = r.whole(v, field, 1, retrain.MostNew)
	case retrain.NotBefore:
		limit, ok := strings.CutPrefix(strings.Join(strings.Fields(v.Value), " "), "price <=")
		most, err := spec.ParsePrice(limit)
		if !ok || err != nil || most <= 0 {
			r.wrong(v, field, fmt.Sprintf("is %.60q", v.Value), "write the highest price of an hour, as "+
				"not_before: price <= $1.20")
		}
		price(c).Most = most
	case "by":
		by, err := spec.ParseDuration(v.Value)
		if err != nil || by <= 0 {
			r.wrong(v, field, fmt.Sprintf("is %.60q", v.Value), "write how long a run waits for the price at most, as by: 6h")
		}
		price(c).By = by
	case retrain.WhenItPays:
		c.Pays = r.pays(v, field)
	}
}

func data(c *retrain.Conditions) *retrain.Data {
	if c.Data == nil {
		c.Data = &retrain.Data{AtLeast: 1}
	}
	return c.Data
}

func price(c *retrain.Conditions) *retrain.Price {
	if c.Price == nil {
		c.Price = &retrain.Price{}
	}
	return c.Price
}

// together refuses a field of a condition without the other that it belongs to.
func (r *Reader) together(y *schedule.Spec, n *yaml.Node) {
	for _, pair := range [][2]string{{"at_least", retrain.OnData}, {"by", retrain.NotBefore}, {retrain.NotBefore, "by"}} {
		if a, b := in(n, pair[0]), in(n, pair[1]); a != nil && b == nil {
			fix := map[string]string{retrain.OnData: "write on_data: and a folder or bucket beside it",
				retrain.NotBefore: "write not_before: price <= $1.20 beside it",
				"by":              "write by: 6h beside it, so that a run does not wait for ever"}[pair[1]]
			r.wrong(a, "schedule."+pair[0], "stands without "+pair[1], fix)
			y.When.Data, y.When.Price = nil, nil
		}
	}
}

// paysFields are the fields of when_it_pays.
var paysFields = []string{"value_of_point", "metric", "point", "goal", "runs", "latest"}

func (r *Reader) pays(n *yaml.Node, field string) *retrain.Pays {
	p := &retrain.Pays{}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map", "write when_it_pays: {value_of_point: $50, metric: evaluate.accuracy}")
		return p
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at := field + "." + key.Value
		switch {
		case !slices.Contains(paysFields, key.Value):
			r.wrong(key, at, "is no field of when_it_pays", "write "+strings.Join(paysFields, ", "))
		case v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "":
			r.wrong(v, at, "is no single value", "write one value behind it")
		case key.Value == "value_of_point":
			amount, err := spec.ParseAmount(v.Value)
			if err != nil {
				r.wrong(v, at, err.Error(), "write what a point of the metric is worth, as value_of_point: $50")
			}
			p.Value = amount
		case key.Value == "metric":
			p.Metric = v.Value
		case key.Value == "point":
			p.Point = v.Value
		case key.Value == "goal":
			p.Goal = v.Value
		case key.Value == "runs":
			p.AtLeast = r.whole(v, at, 1, retrain.MostRuns)
		case key.Value == "latest":
			p.Latest = r.days(v, at)
		}
	}
	return p
}

// days reads a span of whole days.
func (r *Reader) days(v *yaml.Node, field string) int {
	const day = 24 * time.Hour
	d, err := spec.ParseDuration(v.Value)
	if err != nil || d < day || d%day != 0 || d > retrain.MostDays*day {
		r.wrong(v, field, fmt.Sprintf("is %.60q", v.Value), "write whole days, such as latest: 30d")
		return 0
	}
	return int(d / day)
}

// Check checks the conditions of the schedule against the stages.
func (r *Reader) Check(s Schedule, p *pipeline.Spec) {
	if s.Spec == nil || p == nil {
		return
	}
	if wrong, ok := errors.AsType[*retrain.Problem](s.Spec.When.Check(p)); ok {
		at := s.at
		for name := range strings.SplitSeq(wrong.Field, ".") {
			if below := in(at, name); below != nil {
				at = below
			}
		}
		r.wrong(at, "schedule."+wrong.Field, wrong.Err.Error(), "")
	}
}

func (r *Reader) wrong(n *yaml.Node, field, cause, fix string) { r.Wrong(n, field, cause, fix) }

// whole parses a whole number within bounds.
func (r *Reader) whole(v *yaml.Node, field string, least, most int) int {
	n, err := strconv.Atoi(v.Value)
	if err != nil || n < least || n > most {
		r.wrong(v, field, fmt.Sprintf("is %.40q", v.Value), fmt.Sprintf("write a whole number from %d to %d", least, most))
		return least
	}
	return n
}

// in returns the value of a key of a map; nil: it has none.
func in(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
