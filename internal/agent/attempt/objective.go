package attempt

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/wire/api"
)

// Of the metric that a job is judged by a program may report so many values a second, and
// so many more at once: what a poll of its output finds together, or its last lines.
const (
	valuesASecond = 10
	valuesAtOnce  = 50
)

// objective takes the values of the metric that the job is judged by. None is merged with
// another; those above the rate are refused, and counted.
type objective struct {
	name    string    // "": there is none
	used    float64   // of valuesAtOnce, at the time at
	at      time.Time // of the newest value
	broken  bool      // the newest that was taken was no finite number
	refused int64
}

// take returns the value that a report says, or nil where it says none; last is all that
// the program has reported so far, with this report. It fails where the value is one too
// many. The first that is no finite number never is: it ends the job.
func (o *objective) take(now time.Time, s, last api.Step) (*api.Value, error) {
	value, ok := s.Metrics[o.name]
	broken := slices.Contains(s.Broken, o.name)
	if o.name == "" || !ok && !broken {
		return nil, nil
	}
	o.used = max(0, o.used-max(0, now.Sub(o.at).Seconds())*valuesASecond)
	o.at = now
	if o.used >= valuesAtOnce && (!broken || o.broken) {
		o.refused++
		return nil, fmt.Errorf("%d values of %s are refused, a program may report %d a second: report it every few "+
			"steps, or a mean of them", o.refused, o.name, valuesASecond)
	}
	o.used, o.broken = o.used+1, broken
	if broken {
		value = 0
	}
	return &api.Value{At: now, Step: last.Step, Epoch: last.Epoch, Value: value, Broken: broken}, nil
}

// without is a report whose value was refused.
func (o *objective) without(s api.Step) api.Step {
	s.Metrics = maps.Clone(s.Metrics)
	delete(s.Metrics, o.name)
	s.Broken = slices.DeleteFunc(slices.Clone(s.Broken), func(name string) bool { return name == o.name })
	return s
}
