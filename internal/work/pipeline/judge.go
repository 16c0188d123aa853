package pipeline

import (
	"fmt"
	"math/big"
	"slices"
)

// Deployed is the version that the last deploy stage put in place.
type Deployed struct {
	Version int    // 0: no deploy stage has succeeded
	Run     string // the group that deployed it
	// Failed is the group whose deploy stage began later and failed, so that what is in place is unknown; "": none.
	Failed string
	// Metrics are the figures that its stages reported, by the name of the stage and that of the metric.
	Metrics map[string]map[string]string
}

// Verdict is what a gate compared with what, and what came of it. Numbers are written decimals.
type Verdict struct {
	Stage   string `json:"stage"`  // that reported the metric
	Metric  string `json:"metric"` // its name there
	Pass    bool   `json:"pass"`
	Why     string `json:"why"`   // a sentence
	Value   string `json:"value"` // of the metric in this run
	Min     string `json:"min,omitempty"`
	Max     string `json:"max,omitempty"`
	Against string `json:"against,omitempty"` // "deployed" or a decimal; "": nothing but Min and Max
	Version int    `json:"version,omitempty"` // that was deployed; 0: none was, or Against is a number
	Run     string `json:"run,omitempty"`     // that deployed it
	Failed  string `json:"failed,omitempty"`  // the run whose deploy stage failed after that; "": none
	Base    string `json:"base,omitempty"`    // the value compared with
	Gain    string `json:"gain,omitempty"`    // how much better Value is than Base
	Limit   string `json:"limit,omitempty"`   // the gain that the gate asks for, in units of the metric
	Goal    string `json:"goal,omitempty"`
	// Interval is that of the gain; nil: the gate has no confidence, or had nothing to compare with.
	Interval *Interval `json:"interval,omitempty"`
	// Open says that the gain counts only once its interval is known: Pass is not decided yet.
	Open bool `json:"open,omitempty"`
}

// Interval is where a gain lies, from resampled examples.
type Interval struct {
	Confidence string `json:"confidence"` // such as 95%
	Low        string `json:"low"`
	High       string `json:"high"`
	Examples   int    `json:"examples"`      // of this run
	Others     int    `json:"others"`        // of the version compared with; 0: Against is a number
	Paired     bool   `json:"paired"`        // both name the same examples
	Resamples  int    `json:"resamples"`     // that were drawn
	Seed       uint64 `json:"resample_seed"` // that they were drawn with
}

// Judge holds a stage against its gates: metrics has the figures of each stage, deployed is the version in place, nil
// for none. It returns a verdict for each gate. ErrMetric: nobody has reported a metric, or it cannot be compared.
func (s *Spec) Judge(i int, metrics func(stage int) map[string]string, deployed *Deployed) (list []Verdict, err error) {
	all := s.Stages[i].All()
	if len(all) == 0 {
		return nil, nil
	}
	names, before := s.names(), s.before(i)
	for _, g := range all {
		found, name := s.judged(i, &g, names, before)
		if len(found) != 1 {
			return list, fmt.Errorf("%w: no one stage before %s reports %s", ErrMetric, s.Stages[i].Name, g.Metric)
		}
		v := Verdict{Stage: s.Stages[found[0]].Name, Metric: name, Min: g.Min, Max: g.Max}
		text, there := metrics(found[0])[name]
		if !there {
			return list, &NoMetricError{found[0], v.Stage, name}
		}
		v.Value = text
		if err := g.judge(&v, deployed); err != nil {
			return list, fmt.Errorf("%w: %s of %s: %w", ErrMetric, name, v.Stage, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// NoMetricError says that a stage has not reported a metric that a gate judges.
type NoMetricError struct {
	Position      int // of the stage
	Stage, Metric string
}

func (e *NoMetricError) Error() string {
	return fmt.Sprintf("%v: the metrics of %s have no number %s", ErrMetric, e.Stage, e.Metric)
}

func (e *NoMetricError) Unwrap() error { return ErrMetric }

// judge decides a verdict that has its value.
func (g *Gate) judge(v *Verdict, deployed *Deployed) error {
	value, err := Decimal(v.Value)
	if err != nil {
		return err
	}
	v.Pass, v.Why = true, fmt.Sprintf("%s of %s is %s", v.Metric, v.Stage, v.Value)
	for _, b := range []struct {
		bound, words string
		fails        int
	}{{g.Min, "below the min of", -1}, {g.Max, "above the max of", 1}} {
		if b.bound == "" {
			continue
		}
		bound, err := Decimal(b.bound)
		if err != nil {
			return err
		}
		if value.Cmp(bound) == b.fails {
			v.Pass, v.Why = false, fmt.Sprintf("%s, %s %s", v.Why, b.words, b.bound)
			return nil
		}
	}
	if g.MinGain == "" {
		return nil
	}
	return g.compare(v, value, deployed)
}

// wayOut is how a run deploys where its gate cannot compare with the deployed version.
const wayOut = "write against: and a number for one run"

// first decides a verdict while no version is deployed.
func (g *Gate) first(v *Verdict, value *big.Rat, deployed *Deployed) error {
	why := "; nothing is deployed yet, so there is nothing to compare with"
	if deployed != nil {
		why = fmt.Sprintf("; the deploy stage of %s failed and none has succeeded, so there is nothing to compare with",
			deployed.Failed)
	}
	v.Why += why
	if err := g.ambiguous(value); err != nil { // later versions are compared with this one
		return err
	}
	v.Open = g.Confidence != "" // the examples are read: later versions are compared with them
	v.Pass = !v.Open
	return nil
}

// compare decides a verdict by how much better the value is than the one that the gate compares with.
func (g *Gate) compare(v *Verdict, value *big.Rat, deployed *Deployed) error {
	v.Against, v.Goal = g.versus(), g.Goal
	if v.Goal == "" {
		v.Goal = Maximize
	}
	v.Base = v.Against
	if v.Against == AgainstDeployed {
		if v.Base = ""; deployed == nil || deployed.Version == 0 {
			return g.first(v, value, deployed)
		}
		v.Version, v.Run, v.Failed = deployed.Version, deployed.Run, deployed.Failed
		text, there := deployed.Metrics[v.Stage][v.Metric]
		if !there {
			return fmt.Errorf("%s, has not reported it: %s", deployedText(v.Version, v.Failed), wayOut)
		}
		v.Base = text
	}
	base, err := Decimal(v.Base)
	if err != nil {
		return err
	}
	if err := g.ambiguous(base); err != nil {
		if v.Version > 0 {
			err = fmt.Errorf("%s: %w; or %s", deployedText(v.Version, v.Failed), err, wayOut)
		}
		return err
	}
	if !g.Relative { // a share is one of the value compared with
		if err := g.ambiguous(value); err != nil {
			return err
		}
	}
	limit, _, err := percentage(g.MinGain)
	if err != nil {
		return err
	}
	if g.Relative {
		limit.Mul(limit, new(big.Rat).Abs(base))
	}
	gain := new(big.Rat).Sub(value, base)
	if g.Goal == Minimize {
		gain.Neg(gain)
	}
	v.Gain, v.Limit = written(gain), written(limit)
	if g.Confidence != "" {
		v.Open, v.Pass = true, false
		return nil
	}
	v.Pass = gain.Cmp(limit) >= 0
	v.says()
	return nil
}

// Settle decides a verdict that was open, by the interval of the gain whose lower bound is low. While nothing is
// deployed, there is none, and the gate passes.
func (v *Verdict) Settle(in Interval, low *big.Rat) error {
	if v.Base == "" {
		v.Open, v.Pass = false, true
		return nil
	}
	limit, err := Decimal(v.Limit)
	if err != nil {
		return err
	}
	if err := v.within(in); err != nil {
		return err
	}
	v.Interval, v.Open, v.Pass = &in, false, low.Cmp(limit) >= 0
	v.says()
	return nil
}

// within reports a gain that lies outside the interval of its examples: then the examples say something else than the
// metric. A millionth of the two values is allowed, because programs round them.
func (v *Verdict) within(in Interval) error {
	var list [5]*big.Rat
	for i, text := range []string{v.Gain, in.Low, in.High, v.Value, v.Base} {
		x, err := Decimal(text)
		if err != nil {
			return err
		}
		list[i] = x
	}
	gain, low, high := list[0], list[1], list[2]
	near := new(big.Rat).Add(list[3].Abs(list[3]), list[4].Abs(list[4]))
	near.Quo(near, big.NewRat(1_000_000, 1)).Add(near, big.NewRat(1, 1_000_000_000_000)) // the ends have 12 digits
	if gain.Cmp(low.Sub(low, near)) < 0 || gain.Cmp(high.Add(high, near)) > 0 {
		return fmt.Errorf("the metric says a gain of %s, and the examples one from %s to %s: write the metric with more "+
			"digits, as the exact mean of the examples", v.Gain, in.Low, in.High)
	}
	return nil
}

// says puts the comparison into words.
func (v *Verdict) says() {
	with := v.Base
	if v.Version > 0 {
		with = v.Base + " of " + deployedText(v.Version, v.Failed)
	}
	found := fmt.Sprintf("gain %s reaches the required %s", v.Gain, v.Limit)
	switch in := v.Interval; {
	case in != nil:
		found = fmt.Sprintf("gain %s, lower end of its %s interval %s; needed: %s", v.Gain, in.Confidence, in.Low, v.Limit)
	case !v.Pass:
		found = fmt.Sprintf("gain %s is below the required %s", v.Gain, v.Limit)
	}
	v.Why = fmt.Sprintf("%s of %s is %s against %s: %s", v.Metric, v.Stage, v.Value, with, found)
}

// deployedText names the version that a gate compares with; failed is the run whose deploy stage failed after that.
func deployedText(version int, failed string) string {
	if failed == "" {
		return fmt.Sprintf("version %d, which is deployed", version)
	}
	return fmt.Sprintf("version %d, the last whose deploy stage succeeded (that of %s failed later)", version, failed)
}

// Fails is the first verdict that is decided and does not pass; nil: there is none.
func Fails(list []Verdict) *Verdict {
	if i := slices.IndexFunc(list, func(v Verdict) bool { return !v.Pass && !v.Open }); i >= 0 {
		return &list[i]
	}
	return nil
}

// Written is a number as a decimal. One that has no end is rounded after 12 digits.
func Written(v *big.Rat) string { return written(v) }
