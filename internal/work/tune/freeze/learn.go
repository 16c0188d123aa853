package freeze

import (
	"cmp"
	"slices"

	"scrimp/internal/work/tune"
)

// A fit of the kernel uses fitRows rows and fitSteps steps. It repeats when the history has grown by an eighth, or by
// many reports.
const (
	fitRows  = 160
	fitSteps = 12
	minRows  = 5
	growth   = 8
	many     = 200
)

// Bounds of the model, so that a decision takes milliseconds for any number of trials.
const (
	maxRows   = 700 // at a fit
	maxTrials = 512 // without those of earlier searches
	minFresh  = 200 // untrained trials, if there are as many
	maxPast   = 300 // rows of earlier searches
)

// learn updates the model.
func (d *Searcher) learn(h *tune.History) {
	n := len(h.Reports)
	if d.model != nil && n < d.fitted+min(many, max(6, d.fitted/growth)) {
		fresh := slices.Clone(h.Reports[d.seen:])
		// Simultaneous reports arrive in any order.
		slices.SortFunc(fresh, func(a, b tune.Report) int {
			return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Epoch, b.Epoch))
		})
		for _, r := range fresh {
			d.model.add(row{r.Trial, d.shape[r.Epoch], d.scale.of(r.Value), 1})
		}
		d.seen = n
		return
	}
	d.scale = newScale(h)
	rows, trials := d.known(h)
	if len(rows) >= minRows {
		d.th = newFitter(d.f, thin(rows)).fit(d.th, fitSteps)
	}
	d.model = newModel(d.f, d.th, trials)
	for _, r := range rows {
		d.model.add(r)
	}
	d.seen, d.fitted = n, n
}

// free is 0 for a trial that runs, whose next value the model needs, and 1 for others.
func free(h *tune.History, t tune.Trial) int {
	if h.Runs[t].Worker != tune.None {
		return 0
	}
	return 1
}

// known returns the trials of the model and their rows: those that have trained, the running and the best first if
// there are too many, and some untrained ones.
func (d *Searcher) known(h *tune.History) (rows []row, trials []tune.Trial) {
	var curves [][]row
	order, total := slices.Clone(h.Order), 0
	for _, t := range order {
		curves = append(curves, d.curve(h, t))
		total += len(curves[len(curves)-1])
	}
	most := maxTrials - min(minFresh, len(d.order)-len(order))
	if total > maxRows || len(order) > most {
		slices.SortStableFunc(order, func(a, b tune.Trial) int {
			return cmp.Or(cmp.Compare(free(h, a), free(h, b)), cmp.Compare(h.Runs[a].Best, h.Runs[b].Best))
		})
		curves = curves[:0]
		for _, t := range order {
			curves = append(curves, d.curve(h, t))
		}
	}
	for i, t := range order {
		// A running trial without a value takes no row.
		if len(rows)+len(curves[i]) > maxRows || len(trials) >= most {
			break
		}
		rows, trials = append(rows, curves[i]...), append(trials, t)
	}
	for _, t := range d.order {
		if h.Fresh(t) && len(trials) < maxTrials {
			trials = append(trials, t)
		}
	}
	past, of := d.past(h)
	trials = append(trials, of...)
	slices.Sort(trials)
	return append(rows, past...), trials
}

// past returns rows of earlier searches, about maxPast, and the numbers of their configurations, which follow those of
// the trials.
func (d *Searcher) past(h *tune.History) (rows []row, trials []tune.Trial) {
	stride, n := 1+points(h.Search)/(maxPast+1), 0
	for i, p := range h.Past {
		t := len(h.Runs) + i
		for _, v := range p.Points {
			if n++; n%stride != 0 {
				continue
			}
			if rows = append(rows, row{t, d.shape[v.Epoch], d.scale.of(v.Value), 1}); !slices.Contains(trials, t) {
				trials = append(trials, t)
			}
		}
	}
	return rows, trials
}

// curve returns the rows of a trial. In a long curve, neighbouring epochs share a row.
func (d *Searcher) curve(h *tune.History, t tune.Trial) (list []row) {
	values := h.Runs[t].Values
	for from := 0; from < len(values); {
		to := min(len(values), from+max(1, from/2))
		r := row{trial: t, n: float64(to - from)}
		for e := from; e < to; e++ {
			r.z += d.scale.of(values[e]) / r.n
			for p := range parts {
				r.at[p] += d.shape[e+1][p] / r.n
			}
		}
		list = append(list, r)
		from = to
	}
	return list
}

// thin returns every n-th row, so that at most fitRows remain.
func thin(rows []row) (list []row) {
	stride := (len(rows) + fitRows - 1) / fitRows
	for i := 0; i < len(rows); i += stride {
		list = append(list, rows[i])
	}
	return list
}
