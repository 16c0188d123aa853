package freeze

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"scrimp/internal/work/tune"
)

// search returns a search with random parameters: two numbers and a choice.
func search(trials int, seed uint64) *tune.Search {
	c := tune.NewChance(seed)
	s := &tune.Search{Epochs: 12, Budget: 200, Switch: 0.1, Seed: seed, Space: tune.Space{Params: []tune.Param{
		{Name: "lr", Type: tune.Float, High: 1}, {Name: "width", Type: tune.Categorical, Choices: []string{"8", "64", "16"}},
		{Name: "opt", Type: tune.Categorical, Choices: []string{"sgd", "adam"}}}}}
	for range trials {
		s.Trials = append(s.Trials, []float64{c.Float(), float64(c.Next() % 3), float64(c.Next() % 2)})
	}
	return s
}

// drawn returns random rows of some trials at some epochs.
func drawn(s *tune.Search, n int, seed uint64) (rows []row) {
	c, sh := tune.NewChance(seed), newShape(s.Epochs, power)
	for i := range n {
		rows = append(rows, row{trial: int(c.Next() % uint64(len(s.Trials))), at: sh[1+int(c.Next()%uint64(s.Epochs))], z: c.Float() * 2,
			n: float64(1 + i%3)})
	}
	return rows
}

// The posterior that grows row by row equals that of the textbook's formula for all rows at once.
func TestModel_AgreesWithAPlainTwin(t *testing.T) {
	s := search(9, 1)
	f := newFeatures(s)
	th, _ := priorOf(3)
	rows := drawn(s, 14, 2)
	all := []tune.Trial{0, 1, 2, 3, 4, 5, 6, 7, 8}
	m := newModel(f, th, all)
	for _, r := range rows {
		m.add(r)
	}
	// The simple version: the mean is kᵀ(K+N)⁻¹z, by Gaussian elimination.
	kernel := func(a, b int, x, y [parts]float64) (k float64) {
		r2 := 0.0
		for d := range 3 {
			r2 += f.apart(a, b, d) * math.Exp(-2*th[lengths+d])
		}
		c, _ := matern(r2)
		for p := range parts {
			v := shared[p] + math.Exp(th[likeLevel+p])*c
			if a == b {
				v += math.Exp(th[ownLevel+p])
			}
			k += v * x[p] * y[p]
		}
		return k
	}
	n := len(rows)
	for trial := range s.Trials {
		for e := 1; e <= s.Epochs; e += 5 {
			at := newShape(s.Epochs, power)[e]
			a := make([][]float64, n)
			for i := range a {
				a[i] = make([]float64, n+2)
				for j := range n {
					a[i][j] = kernel(rows[i].trial, rows[j].trial, rows[i].at, rows[j].at)
				}
				a[i][i] += noiseOf(math.Exp(th[noise]), &rows[i])
				a[i][n], a[i][n+1] = rows[i].z, kernel(trial, rows[i].trial, at, rows[i].at)
			}
			for i := range n {
				for j := range n {
					if j != i {
						q := a[j][i] / a[i][i]
						for k := range a[j] {
							a[j][k] -= q * a[i][k]
						}
					}
				}
			}
			mean, variance := 0.0, kernel(trial, trial, at, at)
			for i := range n {
				k := kernel(trial, rows[i].trial, at, rows[i].at)
				mean += k * a[i][n] / a[i][i]
				variance -= k * a[i][n+1] / a[i][i]
			}
			gotMean, gotVariance := m.of(trial).at(&at)
			if math.Abs(gotMean-mean) > 1e-7 || math.Abs(gotVariance-variance) > 1e-7 {
				t.Errorf("trial %d, epoch %d: %g ± %g, want %g ± %g", trial, e, gotMean, gotVariance, mean, variance)
			}
		}
	}
}

// A trial that the model leaves out has no posterior, and its rows change nothing.
func TestModel_LeavesTrialsOut(t *testing.T) {
	s := search(5, 1)
	th, _ := priorOf(3)
	m := newModel(newFeatures(s), th, []tune.Trial{1, 3})
	m.add(row{trial: 0, at: [parts]float64{1, 1, 0}, z: 1, n: 1})
	if m.of(0) != nil || m.of(3) == nil || len(m.rows) != 0 {
		t.Error("a trial that the model leaves out counts")
	}
}

func TestFitter_HasTheGradientOfItsValue(t *testing.T) {
	s := search(8, 3)
	fit := newFitter(newFeatures(s), drawn(s, 20, 4))
	th, _ := priorOf(3)
	mean, spread := priorOf(3)
	for i := range th {
		th[i] += 0.1 * float64(i%3)
	}
	grad, none := make(theta, len(th)), make(theta, len(th))
	before := fit.evaluate(th, mean, spread, grad)
	for i := range th {
		const h = 1e-5
		up, down := slices.Clone(th), slices.Clone(th)
		up[i] += h
		down[i] -= h
		want := (fit.evaluate(up, mean, spread, none) - fit.evaluate(down, mean, spread, none)) / (2 * h)
		if math.Abs(grad[i]-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("parameter %d: the gradient is %g, and differences say %g", i, grad[i], want)
		}
	}
	if after := fit.evaluate(fit.fit(th, fitSteps), mean, spread, none); after <= before {
		t.Errorf("the fit goes from %g to %g", before, after)
	}
}

func TestFeatures_ArePlacesAmongTheTrials(t *testing.T) {
	s := &tune.Search{Space: tune.Space{Params: []tune.Param{{Type: tune.Float}, {Type: tune.Categorical, Choices: []string{"8", "64", "16"}},
		{Type: tune.Categorical, Choices: []string{"a", "b"}}}}, Trials: [][]float64{{1e-9, 0, 0}, {5, 1, 1}, {5, 2, 0}, {1e9, 2, 1}}}
	f := newFeatures(s)
	if got := fmt.Sprint(f.x); got != "[[0.125 0.125 0] [0.5 0.875 1] [0.5 0.5 0] [0.875 0.5 1]]" {
		t.Errorf("features %s", got)
	}
	if f.distance(0, 2) != 0.375*0.375*2 || f.apart(0, 1, 2) != 1 {
		t.Errorf("distances %g, %g", f.distance(0, 2), f.apart(0, 1, 2))
	}
}

func TestScale_OrdersValuesAndKeepsThemFinite(t *testing.T) {
	h := tune.NewHistory(&tune.Search{Trials: make([][]float64, 20), Epochs: 2})
	for i := range 20 {
		h.Start(i, 0)
		h.Add(tune.Report{Trial: i, Epoch: 1, Value: 1 + float64(i)})
	}
	s := newScale(h)
	last := math.Inf(-1)
	for _, v := range []float64{math.Inf(-1), -1e300, -3, 0, 1, 2, 4.5, 5, 5.1, 30, 1e300, math.Inf(1), math.NaN()} {
		z := s.of(v)
		if tune.Finite(v) && z < last || math.Abs(z) > noScale {
			t.Errorf("%g is %g on the scale after %g", v, z, last)
		}
		if tune.Finite(v) && math.Abs(z) < noScale && math.Abs(s.value(z)-v) > 1e-9 {
			t.Errorf("%g is %g on the scale, which is %g", v, z, s.value(z))
		}
		if tune.Finite(v) {
			last = z
		}
	}
	if s.of(1) != 0 || s.of(math.NaN()) != noScale {
		t.Errorf("the best is %g, what diverged %g", s.of(1), s.of(math.NaN()))
	}
}

func TestCosts_DependOnTheParameters(t *testing.T) {
	s := search(60, 5)
	cost := func(i int) float64 { return math.Exp(3*s.Trials[i][0]) * (1 + s.Trials[i][2]) }
	h := tune.NewHistory(s)
	for i := range 30 {
		moved := h.Start(i, 0)
		h.Add(tune.Report{Trial: i, Epoch: 1, Value: 1, Cost: cost(i) + s.Switch, Moved: moved})
	}
	c := newCosts(newFeatures(s))
	c.update(h)
	for i := range s.Trials {
		if q := c.of(i) / cost(i); q < 0.7 || q > 1.4 {
			t.Errorf("trial %d costs %.2f, and is expected to cost %.2f", i, cost(i), c.of(i))
		}
	}
}

func TestDesign_BeginsWithTheUsersValues(t *testing.T) {
	s := search(40, 6)
	s.Space.Default = s.Trials[33]
	list := design(s, newFeatures(s))
	if list[0] != 33 || len(list) != starts {
		t.Errorf("design %v", list)
	}
	slices.Sort(list)
	if len(slices.Compact(list)) != starts {
		t.Errorf("a trial is in the design twice: %v", list)
	}
}

// The cost of an epoch is unknown at first: the search begins however small its budget is.
func TestSearcher_BeginsWithASmallBudget(t *testing.T) {
	s := search(9, 3)
	s.Budget = 0.01
	h := tune.NewHistory(s)
	d := New(s)
	c := d.Next(h, 0)
	if c.Trial == tune.None {
		t.Fatal("it begins nothing")
	}
	h.Start(c.Trial, 0)
	h.Add(tune.Report{Trial: c.Trial, Epoch: 1, Value: 1, Cost: 0.009, Spent: 0.009})
	if again := d.Next(h, 0); again.Trial != tune.None {
		t.Errorf("0.001 is left of 0.01, an epoch costs 0.009, and it trains %d", again.Trial)
	}
}

// However many trials have trained, after each fit the model has at most the allowed numbers of rows and trials, and
// includes the best trials, those that run, and untrained ones.
func TestSearcher_BoundsItsModel(t *testing.T) {
	for _, begun := range []int{20, maxTrials - minFresh, 2 * maxRows, 4*maxTrials - 5} {
		s := search(4*maxTrials, 7)
		s.Budget = 1e9
		h := tune.NewHistory(s)
		for i := range begun {
			h.Start(i, 0)
			h.Add(tune.Report{Trial: i, Epoch: 1, Value: float64((i * 7919) % 10007), Cost: 1, Spent: float64(i)})
		}
		h.Start(begun, 0)       // without a value
		h.Start((begun-1)/2, 1) // with one
		rows, trials := New(s).(*Searcher).known(h)
		fresh := 0
		for _, x := range trials {
			if h.Fresh(x) {
				fresh++
			}
		}
		if len(rows) > maxRows || len(trials) > maxTrials || fresh < min(minFresh, len(s.Trials)-begun-1) ||
			len(rows) < min(begun, maxTrials-minFresh-1) {
			t.Errorf("%d have begun: the model has %d rows of %d trials, %d of them untrained", begun, len(rows), len(trials), fresh)
		}
		for _, x := range []tune.Trial{0, begun, (begun - 1) / 2} {
			if !slices.Contains(trials, x) {
				t.Errorf("%d have begun: the model has no trial %d", begun, x)
			}
		}
		if len(slices.Compact(trials)) != len(trials) {
			t.Errorf("%d have begun: a trial is in the model twice", begun)
		}
	}
}

func TestImprovement_OfAStandardGaussian(t *testing.T) {
	for _, c := range []struct{ mean, sd, want float64 }{{0, 1, 0.398942}, {-1, 0, 1}, {1, 0, 0}, {1, 1, 0.083315}, {-2, 1, 2.008491}, {100, 1, 0}} {
		if got := improvement(c.mean, c.sd); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("mean %g, deviation %g: %g, want %g", c.mean, c.sd, got, c.want)
		}
	}
}

// A search ends after its first report if the user values a point at less than some full trainings, and not because of
// it if the point is worth more. The cost of a switch does not count.
func TestDefault_EndsWhereAPointIsWorthLessThanItsPrice(t *testing.T) {
	for value, want := range map[float64]bool{0: false, 4.9 * 2 * 10: true, 5.1 * 2 * 10: false} {
		s := &tune.Search{Space: tune.Space{Params: []tune.Param{{Name: "x", Low: 0, High: 1, Type: tune.Float}}}, Epochs: 10, Budget: 1e6, Switch: 7, PointValue: value,
			Trials: [][]tune.Value{{0.1}, {0.2}, {0.3}, {0.4}, {0.5}, {0.6}, {0.7}, {0.8}, {0.9}}}
		h, by := tune.NewHistory(s), New(s)
		first := by.Next(h, 0)
		if first.Stop {
			t.Errorf("worth %g: it ends before anything is known", value)
		}
		h.Start(first.Trial, 0)
		h.Add(tune.Report{Trial: first.Trial, Epoch: 1, Value: 1, Cost: 9, Moved: true, Spent: 9}) // an epoch costs 2
		if c := by.Next(h, 0); c.Stop != want {
			t.Errorf("worth %g: it ends: %t, want %t", value, c.Stop, want)
		}
		watched := Watch(by, s)
		if c := watched.Next(h, 0); c.Stop != want {
			t.Errorf("worth %g, watching another searcher: it ends: %t, want %t", value, c.Stop, want)
		}
	}
}

// The expected gains of a point add up to the mean course of recorded searches: three full trainings gain 0.6 of a point,
// and all that follow the other 0.4, since the integral of 0.2 · (s/3)^-2.5 from 3 on is 0.2 · 3 / 1.5. A search pays
// from the start where a point is worth five full trainings.
func TestGains_FollowTheMeanCourse(t *testing.T) {
	const full, step = 7.0, 0.001
	for till, want := range map[float64]float64{1: 0.2, 3: 0.6, 12: 0.95, 300: 0.9996} {
		sum := 0.0
		for s := step / 2; s < till; s += step {
			sum += gains(s*full, full) * step * full
		}
		if math.Abs(sum-want) > 1e-3 {
			t.Errorf("%g full trainings gain %.4f points, want %.4f", till, sum, want)
		}
	}
	if v := 1 / gains(0, full) / full; math.Abs(v-5) > 1e-9 {
		t.Errorf("a search pays from %g full trainings a point, want 5", v)
	}
	if got := 1 / gains(3*math.Pow(4, 0.4)*full, full) / full; math.Abs(got-20) > 1e-9 {
		t.Errorf("after 5.2 full trainings it pays where a point is worth %g, want 20", got)
	}
	if !math.IsInf(gains(1, 0), 1) {
		t.Error("what costs nothing always pays")
	}
}
