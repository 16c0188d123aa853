package progress

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/wire/api"
)

// Rate limit for values of the objective metric: per second, and as a burst. One poll of the
// output, or its last lines, may find many values at once.
const (
	valuesASecond = 10
	valuesAtOnce  = 50
)

// Objective collects the values of the objective metric. It never merges two values, and it refuses
// and counts those above the rate limit.
type Objective struct {
	Name    string    // empty: the job has no objective metric
	used    float64   // used part of valuesAtOnce, as of at
	at      time.Time // time of the newest value
	broken  bool      // the newest accepted value was not finite
	refused int64
}

// Take returns the metric's value in the report s, or nil if s has none. last is all progress so
// far, including s. Take returns an error if the value exceeds the rate limit. It always accepts
// the first non-finite value, which ends the job.
func (o *Objective) Take(now time.Time, s, last api.Step) (*api.Value, error) {
	value, ok := s.Metrics[o.Name]
	broken := slices.Contains(s.Broken, o.Name)
	if o.Name == "" || !ok && !broken {
		return nil, nil
	}
	o.used = max(0, o.used-max(0, now.Sub(o.at).Seconds())*valuesASecond)
	o.at = now
	if o.used >= valuesAtOnce && (!broken || o.broken) {
		o.refused++
		return nil, fmt.Errorf("the agent refused %d values of %s, more than %d a second: report it every few "+
			"steps, or a mean of them", o.refused, o.Name, valuesASecond)
	}
	o.used, o.broken = o.used+1, broken
	if broken {
		value = 0
	}
	return &api.Value{At: now, Step: last.Step, Epoch: last.Epoch, Value: value, Broken: broken}, nil
}

// Without returns s without the objective metric.
func (o *Objective) Without(s api.Step) api.Step {
	s.Metrics = maps.Clone(s.Metrics)
	delete(s.Metrics, o.Name)
	s.Broken = slices.DeleteFunc(slices.Clone(s.Broken), func(name string) bool { return name == o.Name })
	return s
}
