package freeze

import (
	"scrimp/internal/work/tune"
)

// most is how many rows the fit of the parameters takes.
const most = 160

// learn brings the model up to date. It fits the scale and the kernel anew each time the history has grown by a part.
func (d *Searcher) learn(h *tune.History) {
	n := len(h.Reports)
	if d.model != nil && n < d.fitted+max(6, d.fitted/8) {
		for ; d.seen < n; d.seen++ {
			r := h.Reports[d.seen]
			d.model.add(row{r.Trial, d.shape[r.Epoch], d.scale.of(r.Value), 1})
		}
		return
	}
	d.scale = newScale(h)
	rows := d.rows(h)
	if len(rows) > 4 {
		sub := rows
		if len(sub) > most {
			sub = d.part(h, rows)
		}
		d.th, _ = newFitter(d.f, sub).fit(d.th, 12)
	}
	d.model = newModel(d.f, d.th)
	for _, r := range rows {
		d.model.add(r)
	}
	d.seen, d.fitted = n, n
}

// rows are the values of all trials; of a long curve those of neighbouring epochs are one.
func (d *Searcher) rows(h *tune.History) (list []row) {
	for _, t := range h.Order {
		list = append(list, d.curve(h, t)...)
	}
	return list
}

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

// part is most rows, those of the trials that have trained longest and of those that began last first.
func (d *Searcher) part(h *tune.History, rows []row) []row {
	stride := (len(rows) + most - 1) / most
	var list []row
	for i := range rows {
		if i%stride == 0 {
			list = append(list, rows[i])
		}
	}
	return list
}
