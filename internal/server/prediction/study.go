package prediction

import (
	"scrimp/internal/work/study"
)

// Means returns what the trials of a study of the job need, with the rules by which a server takes a study. The caller
// adds the budget.
func (q *Outlook) Means(atOnce int) study.Means {
	t := &q.Terms
	m := study.Means{AtOnce: atOnce, GPUs: t.Need.LeastGPUs(), Grace: t.Grace, Start: t.Restart, Currency: t.Currency}
	known := false
	for _, s := range q.sale() {
		if !s.quote.Priced {
			continue
		}
		cost := s.quote.Rate.Until(max(t.Restart, s.offer.Billing.Minimum) + t.Grace)
		if !known || cost.Cmp(m.Least) < 0 {
			m.Least, known = cost, true
		}
	}
	m.Least = m.Least.Times(study.LeastStarts)
	return m
}
