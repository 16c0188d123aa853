package tracking

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	api "scrimp/client"
)

// OptunaVersion is the newest version of Optuna whose journal has the format of Optuna.
const OptunaVersion = "4"

// Operations of Optuna's journal, and its codes of directions and trial states.
const (
	opCreateStudy = 0
	opStudyAttr   = 2
	opCreateTrial = 4
	minimize      = 1
	maximize      = 2
	optunaTime    = "2006-01-02T15:04:05.000000"
	optunaWorker  = "scrimp"
	stateRunning  = 0
	stateComplete = 1
	statePruned   = 2
	stateFailed   = 3
	categorical   = "CategoricalDistribution"
)

// object is a JSON object.
type object = map[string]any

// Optuna returns a journal that Optuna's JournalStorage(JournalFileBackend(path)) reads: one JSON object a line, one
// for the study, one for each of its attributes, and one for each trial. A trial that was trained in full is complete,
// with its best value; one that the search left early, or trained on its proxy, is pruned. Times are UTC.
func Optuna(s *Search) ([]byte, error) {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	direction := minimize
	if s.Group.Study.Maximize {
		direction = maximize
	}
	lines := []object{{"op_code": opCreateStudy, "study_name": s.Group.ID, "directions": []int{direction}}}
	for _, a := range []figure{{"metric", s.Group.Study.Metric}, {"searcher", s.Group.Study.Searcher},
		{"cost", s.Group.Spent.String()}, {"currency", string(s.Group.Currency)}, {"best", s.best()}} {
		lines = append(lines, object{"op_code": opStudyAttr, "study_id": 0, "user_attr": object{a.name: a.value}})
	}
	for i := range s.Trials {
		line, err := s.optunaTrial(&s.Trials[i])
		if err != nil {
			return nil, fmt.Errorf("trial %s: %w", s.Trials[i].ID, err)
		}
		lines = append(lines, line)
	}
	for _, l := range lines {
		l["worker_id"] = optunaWorker
		if err := w.Encode(l); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// best returns the job of the best trial, which may be one that the search left early; "" without one.
func (s *Search) best() string {
	if t := s.Group.Study.Best; t != nil {
		return t.ID
	}
	return ""
}

// optunaTrial returns the operation that creates a trial as it stands.
func (s *Search) optunaTrial(t *api.Trial) (object, error) {
	params, distributions := object{}, object{}
	ran, proxy := s.ran(t)
	for i := range s.Group.Study.Params {
		p := &s.Group.Study.Params[i]
		value, distribution, err := s.optunaParam(p, ran[p.Name], t.Params[p.Name])
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		text, err := json.Marshal(distribution) // the journal has it as text
		if err != nil {
			return nil, err
		}
		params[p.Name], distributions[p.Name] = value, string(text)
	}
	values := object{}
	for _, v := range t.Curve {
		values[strconv.FormatInt(s.step(v.Unit), 10)] = v.Value
	}
	attrs := object{"scrimp_job": t.ID, "state": t.State, "why": t.Why}
	if s.Group.Study.Proxy != nil {
		attrs["proxy"] = t.Proxy
	}
	for name, text := range proxy {
		attrs["proxy_"+name] = text
	}
	for _, f := range s.figures(t) {
		v, err := strconv.ParseFloat(f.value, 64)
		if err != nil {
			return nil, err
		}
		attrs[f.name] = v
	}
	line := object{"op_code": opCreateTrial, "study_id": 0, "params": params, "distributions": distributions,
		"user_attrs": attrs, "system_attrs": object{}, "intermediate_values": values, "value": nil, "values": nil,
		"state": [...]int{stateRunning, stateComplete, statePruned, stateFailed}[s.outcome(t)]}
	if o := s.outcome(t); t.Best != nil && (o == complete || o == pruned) {
		line["value"] = *t.Best
	}
	from, to := s.span(t)
	if from.IsZero() { // Optuna refuses to copy a trial without a start
		from = s.Group.Submitted.UTC()
	}
	line["datetime_start"] = from.Format(optunaTime)
	if s.outcome(t) != running {
		if to.IsZero() { // a paused trial, which the search may still continue
			to = from
		}
		line["datetime_complete"] = to.Format(optunaTime)
	}
	return line, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// optunaParam returns a parameter's value as Optuna stores it, and its distribution: text is the value with which the
// trial ran, and full that of a full training. Optuna has no normal distribution: scrimp writes a range from the
// smallest to the largest value of all trials.
func (s *Search) optunaParam(p *api.StudyParam, text, full string) (value float64, distribution object, err error) {
	set, sets := "", false
	if x := s.Group.Study.Proxy; x != nil {
		set, sets = x.Set[p.Name]
	}
	if len(p.Values) > 0 {
		values := p.Values
		if sets && !slices.Contains(values, set) { // Optuna wants the same choices in all trials
			values = append(slices.Clone(values), set)
		}
		return choice(values, text)
	}
	low, high := p.Min, p.Max
	if p.Sigma > 0 {
		low, high = s.spread(p.Name)
	}
	if by, err := strconv.ParseFloat(set, 64); sets && err == nil {
		low, high = math.Min(low, by), math.Max(high, by)
	} else if sets { // the proxy sets a word where the space has numbers
		text = full
	}
	if value, err = strconv.ParseFloat(text, 64); err != nil {
		return 0, nil, err
	}
	if p.Int && !sets {
		return value, object{"name": "IntDistribution", "attributes": object{"log": p.Log && low >= 1, "step": 1,
			"low": int64(math.Ceil(low)), "high": int64(math.Floor(high))}}, nil
	}
	return value, object{"name": "FloatDistribution", "attributes": object{"step": nil, "low": low, "high": high,
		"log": p.Log && low > 0}}, nil
}

// choice returns the index of a value among choices in JSON, and their distribution.
func choice(values []string, text string) (index float64, distribution object, err error) {
	choices := make([]any, len(values))
	index = -1
	for i, v := range values {
		if err := json.Unmarshal([]byte(v), &choices[i]); err != nil {
			return 0, nil, err
		}
		plain, is := choices[i].(string)
		if !is {
			plain = v
		}
		switch choices[i].(type) {
		case map[string]any, []any:
			choices[i] = v // Optuna's choices are plain values
		}
		if plain == text {
			index = float64(i)
		}
	}
	if index < 0 {
		return 0, nil, fmt.Errorf("%q is none of its values", text)
	}
	return index, object{"name": categorical, "attributes": object{"choices": choices}}, nil
}

// spread returns the smallest and the largest value of a parameter over all trials.
func (s *Search) spread(name string) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, t := range s.Trials {
		if v, err := strconv.ParseFloat(t.Params[name], 64); err == nil {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	return low, high
}
