// Package tune holds what all searches for the best configuration within a budget share: the space of hyper-parameters,
// the history of a search, and the interface of searchers. The simulator and live searches call a searcher in the same
// way. A searcher has no clock, and no randomness except its seed: the same history gives the same choice.
package tune

import "math"

// A Trial is the number of a configuration, counted from 0.
type Trial = int

// None means no trial.
const None Trial = -1

// A Search holds what a searcher knows before anything has run.
type Search struct {
	Space  Space
	Trials [][]Value // the values of each trial's parameters, in the order of the space
	Epochs int       // of a full training
	// Budget is in the unit of costs: the simulator counts seconds of a worker.
	Budget float64
	Unpaid bool    // nothing but the number of trials ends the search: an epoch more is no use of a rest
	Switch float64 // extra cost of an epoch if its worker trained another trial, or none, before
	Seed   uint64
	// PointValue is what one point of r is worth, in the unit of costs. With 0 the search spends its whole budget. A
	// point is the distance from the trial at the best quarter to the best trial.
	PointValue float64
	// Plateau ends the search by itself, as PointValue does.
	Plateau Plateau
	// Past holds configurations that an earlier search has trained. Searchers with a model learn from them. They are
	// no trials.
	Past []Past
}

// A Plateau is when a search ends by itself: once its expected gain per cost stays below MinGain.
type Plateau struct {
	MinGain  float64 // of the metric per unit of cost; 0: that of PointValue
	Patience int     // consecutive reports; 0: those of 15 % of the spend
}

// A Past is a configuration of an earlier search, with the values of its metric.
type Past struct {
	Values []Value // of the parameters, in the order of the space
	Points []Point
}

// A Point is a value of the metric after an epoch.
type Point struct {
	Epoch int // from 1 to the epochs of a full training
	Value float64
}

// A Report says that a trial has trained one epoch.
type Report struct {
	Trial Trial
	Epoch int     // counted from 1
	Value float64 // of the metric, smaller is better; NaN or infinite if the training diverged
	Cost  float64 // of this epoch, with the cost of switching
	Moved bool    // the cost includes a switch
	Spent float64 // by the whole search so far, including unfinished epochs
}

// A Choice is the next action of a worker.
type Choice struct {
	Trial Trial // to train for one epoch; None: the worker waits for the next report
	Stop  bool  // continuing does not pay: the search should end
	// Gain is how much the metric is expected to improve per unit of cost, if Stop is set. Least is the gain that
	// would pay.
	Gain, Least float64
}

// A Searcher chooses what each worker trains next. It must not choose a trial that is running, has failed or is
// complete.
type Searcher interface {
	// Next is called when a worker is free. The caller starts the chosen trial.
	Next(h *History, worker int) Choice
}

// Wait is the choice of no trial.
var Wait = Choice{Trial: None}

// Train returns the choice of a trial.
func Train(t Trial) Choice { return Choice{Trial: t} }

// Stops reports whether the search may end by itself.
func (s *Search) Stops() bool { return s.PointValue > 0 || s.Plateau.MinGain > 0 }

// Finite reports whether a metric's value is a number that can be compared.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
