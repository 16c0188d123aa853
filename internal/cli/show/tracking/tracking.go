// Package tracking writes the trials of a search in the formats of experiment trackers: Optuna's journal storage and
// MLflow's file store.
package tracking

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/work/study"
	"scrimp/money"
)

// Search is a search with its trials and what each of them cost.
type Search struct {
	Group  api.Group
	Trials []api.Trial       // with their curves
	Lines  []api.GroupMember // of the receipt
}

// ran returns the parameters with which a trial ran, and proxy those that only trials on the proxy have. Proxies set
// parameters to cheaper values.
func (s *Search) ran(t *api.Trial) (params, proxy map[string]string) {
	if !t.Proxy || s.Group.Study.Proxy == nil {
		return t.Params, nil
	}
	params, proxy = maps.Clone(t.Params), map[string]string{}
	p := (*study.Proxy)(&s.Group.Study.Proxy.StudyProxy)
	for name := range p.Set {
		text, _ := p.Text(name)
		if _, is := params[name]; is {
			params[name] = text
		} else {
			proxy[name] = text
		}
	}
	return params, proxy
}

// line returns the line of a trial on the receipt, or nil.
func (s *Search) line(id string) *api.GroupMember {
	for i := range s.Lines {
		if s.Lines[i].ID == id {
			return &s.Lines[i]
		}
	}
	return nil
}

// figure is a figure of a trial's bill.
type figure struct {
	name  string
	value string // a decimal number
}

// figures returns what a trial cost, by name. It leaves out what nobody knows.
func (s *Search) figures(t *api.Trial) (list []figure) {
	in := "_" + strings.ToLower(string(s.Group.Currency))
	add := func(name string, a money.Amount) { list = append(list, figure{name + in, a.String()}) }
	add("cost", t.Cost)
	l := s.line(t.ID)
	if l == nil {
		return list
	}
	if l.OnDemand != nil {
		add("saved", l.OnDemand.Sub(l.Cost))
	}
	add("lost", l.Lost)
	return append(list, figure{"interruptions", fmt.Sprint(l.Interruptions)})
}

// step returns a unit of the fidelity as a whole number: itself, or how many least units it has if those are fractions.
func (s *Search) step(unit float64) int64 {
	if f := s.Group.Study.Fidelity; f != nil && f.Min != math.Round(f.Min) {
		return int64(math.Round(unit / f.Min))
	}
	return int64(math.Round(unit))
}

// outcome is how a trial has ended, in the words of trackers.
type outcome int

const (
	running outcome = iota
	complete
	pruned
	failed
)

func (s *Search) outcome(t *api.Trial) outcome {
	switch {
	case t.State == "failed" || t.State == "cancelled" || t.Why == "diverged":
		return failed
	case t.State == "succeeded" && t.Best != nil && t.Proxy:
		return pruned // its value does not compare with those of full trainings
	case t.State == "succeeded" && t.Best != nil:
		return complete
	case t.State == "stopped" || t.State == "paused":
		return pruned
	case t.State == "succeeded":
		return failed // it has no value
	}
	return running
}

// span returns when a trial started and ended; zero: it has not.
func (s *Search) span(t *api.Trial) (from, to time.Time) {
	if l := s.line(t.ID); l != nil {
		if l.Started != nil {
			from = l.Started.UTC()
		}
		if l.Finished != nil {
			to = l.Finished.UTC()
		}
	}
	return from, to
}
