package freeze

import (
	"cmp"
	"slices"

	"scrimp/internal/work/tune"
)

// The fit of the kernel takes maxRows rows and fitSteps steps. It comes again when the history has grown by an eighth.
const (
	maxRows  = 160
	fitSteps = 12
	minRows  = 5
	growth   = 8
)

// learn brings the model up to date.
func (d *Searcher) learn(h *tune.History) {
	n := len(h.Reports)
	if d.model != nil && n < d.fitted+max(6, d.fitted/growth) {
		fresh := slices.Clone(h.Reports[d.seen:])
		// Reports that come together come in any order.
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
	var rows []row
	for _, t := range h.Order {
		rows = append(rows, d.curve(h, t)...)
	}
	if len(rows) >= minRows {
		d.th = newFitter(d.f, thin(rows)).fit(d.th, fitSteps)
	}
	d.model = newModel(d.f, d.th)
	for _, r := range rows {
		d.model.add(r)
	}
	d.seen, d.fitted = n, n
}

// curve is the rows of a trial. In a long curve the values of neighbouring epochs are one row.
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

// thin is every second row, or third and so on, so that maxRows are left at most.
func thin(rows []row) (list []row) {
	stride := (len(rows) + maxRows - 1) / maxRows
	for i := 0; i < len(rows); i += stride {
		list = append(list, rows[i])
	}
	return list
}
