// Package study defines a search for the best configuration within a budget: its space, its metric, how long a trial
// trains, and the pool of configurations for its trials. The pool is a function of the space and the seed, so a
// configuration is identified by its number in the pool, in the log and everywhere else.
package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/work/tune"
)

// Spec is a search.
type Spec struct {
	Metric   string  `json:"metric"`
	Maximize bool    `json:"maximize,omitempty"`
	Params   []Param `json:"params"`
	// Fidelity measures a trial's training. Without it a trial is one complete run of its program.
	Fidelity Fidelity      `json:"fidelity,omitzero"`
	Searcher string        `json:"searcher"`
	Grid     bool          `json:"grid,omitempty"` // the pool is every combination of values instead of a sample
	Seed     uint64        `json:"seed,omitempty"`
	Trials   int           `json:"trials,omitempty"`        // maximum number; 0 for as many as the pool has configurations
	Wall     time.Duration `json:"wall_clock_ns,omitempty"` // of the whole search; 0 for no limit
	GPUHours float64       `json:"gpu_hours,omitempty"`     // of all trials together; 0 for no limit
	Final    bool          `json:"final,omitempty"`         // train the best configuration fully at the end
	Plateau  *Plateau      `json:"plateau,omitempty"`       // when the search ends by itself; nil: never
	Past     []Past        `json:"past,omitempty"`          // what earlier searches have found
	Proxy    *Proxy        `json:"proxy,omitempty"`         // the cheaper training to search on; nil: the full one
}

// Fidelity measures a trial's training in epochs or steps, as its program reports them.
type Fidelity struct {
	Name string  `json:"name,omitempty"` // epoch or step; empty if a trial is not divided
	Min  float64 `json:"min,omitempty"`  // one unit: a searcher decides after each
	Max  float64 `json:"max,omitempty"`  // of a full training
}

// Names of fidelities.
const (
	Epoch = "epoch"
	Step  = "step"
)

// Bounds of searches.
const (
	MaxTrials = 10_000
	MaxUnits  = 1_000
	MaxParams = tune.MaxParams
	MaxValues = 100
	MaxBytes  = 1024    // of a value, and of the metric's name
	poolSize  = 512     // configurations of a sample, unless more trials are requested
	maxNumber = 1e15    // of a parameter
	minStep   = 1e-15   // of q and sigma of a parameter, if they are set
	maxLength = 1e12    // of a fidelity
	maxSpace  = 256_000 // values of a pool: parameters times configurations
)

// Units returns the units of a full training of the search: with a proxy, of one on the proxy.
func (s *Spec) Units() int { return s.Length(false).Units() }

// Units returns the units of a full training.
func (f Fidelity) Units() int {
	if f.Name == "" {
		return 1
	}
	return max(1, int(math.Ceil(f.Max/f.Min-1e-9)))
}

// Unit returns the units that a trial has trained by a report. A value before the end of the first unit belongs to
// none, 0.
func (f Fidelity) Unit(step int64, epoch float64) int {
	x := epoch
	switch f.Name {
	case "":
		return 1
	case Step:
		x = float64(step)
	}
	if x >= f.Max {
		return f.Units()
	}
	return max(0, min(f.Units(), int(x/f.Min+1e-9)))
}

// Expected returns about how many full trainings a search with so many trials needs, if no budget ends it before. A
// third of the trials goes on at each rung. It is an upper bound for searchers without rungs.
func (s *Spec) Expected(trials int) float64 {
	of := func(first int) (units float64) {
		share, before := 1.0, 0
		for rung := first; before < s.Units(); rung *= 3 {
			rung = min(rung, s.Units())
			units += share * float64(rung-before)
			share, before = share/3, rung
		}
		return units / float64(s.Units())
	}
	each := 1.0
	switch s.Searcher {
	case "asha-stop", "asha-promo":
		each = of(1)
	case "hyperband-async": // nine, three and one of thirteen trials begin at the first, second and third rung
		each = (9*of(1) + 3*of(3) + of(9)) / 13
	}
	return each * float64(trials)
}

// Resumes reports whether the searcher returns to trials that it has left.
func (s *Spec) Resumes() bool {
	return !slices.Contains([]string{"random", "median-stop", "asha-stop"}, s.Searcher)
}

// checkNumbers returns the field and the error of a name or number outside its bounds.
func (s *Spec) checkNumbers() (field string, err error) {
	switch {
	case s.Metric == "" || len(s.Metric) > MaxBytes:
		return "metric", fmt.Errorf("give the name of the metric, of 1 to %d bytes", MaxBytes)
	case len(s.Params) == 0:
		return "params", fmt.Errorf("the space is empty: give one parameter at least")
	case len(s.Params) > MaxParams:
		return "params", fmt.Errorf("it has %d parameters: give at most %d", len(s.Params), MaxParams)
	case s.Trials < 0 || s.Trials > MaxTrials:
		return "trials", fmt.Errorf("%d trials: give 1 to %d, or leave it out", s.Trials, MaxTrials)
	case s.Wall < 0 || s.Wall > 10*365*24*time.Hour:
		return "wall_clock", fmt.Errorf("give a wall clock from 0 to ten years")
	}
	if err := s.Plateau.check(); err != nil {
		return "plateau", err
	}
	if !(s.GPUHours >= 0) || !quantity.GPUHours.Allows(s.GPUHours) {
		return "gpu_hours", fmt.Errorf("%g GPU-hours: give a number above zero and at most %.0f, or leave it out",
			s.GPUHours, quantity.GPUHours.Most)
	}
	return "", nil
}

// Check returns the field and the error of an invalid search.
func (s *Spec) Check() (field string, err error) {
	if field, err := s.checkNumbers(); err != nil {
		return field, err
	}
	if field, err := s.checkParams(); err != nil {
		return field, err
	}
	if err := s.Fidelity.check(); err != nil {
		return "fidelity", err
	}
	if s.Fidelity.Name == "" && s.Searcher != "random" {
		return "fidelity", fmt.Errorf("%s decides while trials train: say what is counted, such as "+
			"fidelity {name: epoch, min: 1, max: 27}, or take the searcher random", s.Searcher)
	}
	if err := s.checkProxy(); err != nil {
		return "proxy", err
	}
	if field, err := s.checkPast(); err != nil {
		return field, err
	}
	n, err := s.size()
	switch {
	case err != nil:
		return "params", err
	case n*len(s.Params) > maxSpace:
		return "params", fmt.Errorf("%d configurations of %d parameters: give fewer trials or parameters", n, len(s.Params))
	}
	return "", nil
}

// checkParams checks each parameter, and that no two share a name or an environment variable.
func (s *Spec) checkParams() (field string, err error) {
	for i := range s.Params {
		p := &s.Params[i]
		field := fmt.Sprintf("params[%d]", i)
		if err := p.check(); err != nil {
			return field, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		for _, o := range s.Params[:i] {
			if o.Name == p.Name || envName(o.Name) == envName(p.Name) {
				return field, fmt.Errorf("parameter %s: %s has that name too: rename one", p.Name, o.Name)
			}
		}
	}
	return "", nil
}

func (f Fidelity) check() error {
	switch {
	case f == (Fidelity{}):
		return nil
	case f.Name != Epoch && f.Name != Step:
		return fmt.Errorf("name is %q: write epoch or step, as the program reports them", f.Name)
	case !(f.Min > 0 && f.Min <= f.Max && f.Max <= maxLength):
		return fmt.Errorf("min is %g and max %g: give a min above 0, and a max from there to %.0f", f.Min, f.Max, maxLength)
	case f.Max/f.Min > MaxUnits:
		return fmt.Errorf("max is %g times min: give a larger min, so that it is at most %d times", f.Max/f.Min, MaxUnits)
	}
	return nil
}

// Combinations returns the number of value combinations of the space, and false if it exceeds a pool or is infinite.
func (s *Spec) Combinations() (int, bool) {
	n := 1
	for i := range s.Params {
		k := s.Params[i].count()
		if k == 0 || n > MaxTrials/k {
			return 0, false
		}
		n *= k
	}
	return n, true
}

// size returns the largest number of configurations in the pool.
func (s *Spec) size() (int, error) {
	all, known := s.Combinations()
	switch {
	case s.Grid && !known:
		return 0, fmt.Errorf("a grid needs parameters of few values, and at most %d combinations: give each of them values, "+
			"or q, or take another method", MaxTrials)
	case s.Grid:
		return all, nil
	}
	n := max(poolSize, s.Trials)
	if known {
		n = min(n, all)
	}
	return n, nil
}

// Pool returns the configurations for trials, each with its values in parameter order.
func (s *Spec) Pool() [][]tune.Value {
	n, err := s.size()
	if err != nil {
		return nil
	}
	if all, known := s.Combinations(); known && (s.Grid || n == all) {
		return s.product(all)
	}
	return s.sample(n)
}

// product returns every combination of values.
func (s *Spec) product(n int) [][]tune.Value {
	list := make([][]tune.Value, n)
	for i := range list {
		list[i] = make([]tune.Value, len(s.Params))
		rest := i
		for d := len(s.Params) - 1; d >= 0; d-- {
			k := s.Params[d].count()
			list[i][d] = s.Params[d].at(rest % k)
			rest /= k
		}
	}
	return list
}

// sample returns a Latin hypercube: each of n parts of a parameter's range has one configuration.
func (s *Spec) sample(n int) [][]tune.Value {
	list := make([][]tune.Value, n)
	for i := range list {
		list[i] = make([]tune.Value, len(s.Params))
	}
	chance := tune.NewChance(s.Seed)
	for d := range s.Params {
		for i, part := range tune.Shuffled(n, chance.Next()) {
			list[i][d] = s.Params[d].draw((float64(part) + chance.Float()) / float64(n))
		}
	}
	seen, kept := map[string]bool{}, list[:0]
	for _, v := range list {
		if key := fmt.Sprint(v); !seen[key] {
			seen[key], kept = true, append(kept, v)
		}
	}
	return kept
}

// Space returns the space for searchers.
func (s *Spec) Space() tune.Space {
	space := tune.Space{}
	for i := range s.Params {
		space.Params = append(space.Params, s.Params[i].tuned())
	}
	return space
}

// Texts returns the values of a configuration for programs, in parameter order, or nil if the configuration does not
// exist.
func (s *Spec) Texts(pool [][]tune.Value, config int) []string {
	if config < 0 || config >= len(pool) {
		return nil
	}
	list := make([]string, len(s.Params))
	for d := range s.Params {
		list[d] = s.Params[d].text(pool[config][d])
	}
	return list
}

// envName converts a parameter's name for an environment variable.
func envName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, name)
}
