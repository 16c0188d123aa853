package reports

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/variance"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// mostMoved bounds the jobs listed by name.
const mostMoved = 10

// Why explains the difference in cost between two periods.
func (b *Books) Why(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	by := cmp.Or(q.Get("by"), "team")
	name, err := b.nameBy(by)
	if err != nil {
		reply.FieldProblem(w, http.StatusBadRequest, "by", "this is not a filter of costs", "write "+groups, err)
		return
	}
	var spans [2]charge.Span
	now := b.Control.Now().UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	month := [2]time.Time{first.AddDate(0, -1, 0), first}
	for i, field := range []string{"before", "after"} {
		text := q.Get(field)
		if !q.Has(field) {
			text = month[i].Format("2006-01")
		}
		spans[i], err = charge.ParsePeriod(field, text)
		if bad, ok := errors.AsType[*charge.SpanError](err); ok {
			reply.FieldProblem(w, http.StatusBadRequest, bad.Field, "this is no period", bad.Fix, bad.Err)
			return
		}
		if spans[i].Since.After(b.latest()) {
			reply.FieldProblem(w, http.StatusBadRequest, field, "this period has not begun",
				"write a period that has begun, such as "+now.Format("2006-01"), nil)
			return
		}
	}
	if spans[0] == spans[1] {
		reply.FieldProblem(w, http.StatusBadRequest, "after", "both periods are the same", "give another period", nil)
		return
	}
	c := comparison{name: name, spans: spans, lines: map[lineKey]*pair{}, totals: map[money.Currency]*pair{},
		jobs: map[money.Currency]variance.Jobs{}}
	for i := range spans {
		err := b.EachCharge(r.Context(), auth.CallerOf(r), spans[i], func(v charge.Charge) error {
			c.add(i, &v)
			return nil
		})
		if err != nil {
			Unread(w, "cannot read the ledger", err)
			return
		}
	}
	if len(c.lines) == 0 {
		reply.Problem(w, http.StatusNotFound, "there are no costs in either period",
			"give others: scrimp costs shows who spent what", nil)
		return
	}
	v := c.answer()
	v.By = by
	reply.JSON(w, v)
}

// latest returns the present market time: no earlier than the last event, whose costs count.
func (b *Books) latest() time.Time {
	now := b.Control.Now()
	b.Control.Read(func(m *core.Machine) {
		if m.Now().After(now) {
			now = m.Now()
		}
	})
	return now
}

// comparison collects the costs of two periods.
type comparison struct {
	name   func(w ledger.Dimensions, job string) string
	spans  [2]charge.Span
	lines  map[lineKey]*pair
	totals map[money.Currency]*pair
	jobs   map[money.Currency]variance.Jobs
}

// pair holds the costs of one name before and after.
type pair [2]*variance.Period

func pairOf[K comparable](of map[K]*pair, k K) *pair {
	if of[k] == nil {
		of[k] = &pair{variance.NewPeriod(), variance.NewPeriod()}
	}
	return of[k]
}

// line returns the change of a pair, split by cause.
func (p *pair) line(name string, currency money.Currency) client.WhyLine {
	l := client.WhyLine{Name: name, Currency: currency, Before: p[0].Cost(), After: p[1].Cost(),
		Change: p[1].Cost().Sub(p[0].Cost()), Parts: map[string]money.Amount{}}
	for cause, part := range variance.Split(p[0], p[1]) {
		l.Parts[string(cause)] = part
	}
	return l
}

func (c *comparison) add(at int, v *charge.Charge) {
	o := &v.Owner
	w := ledger.Dimensions{Team: o.Team, Project: o.Project, User: v.User, Kind: v.Kind, Tags: ledger.TagText(o.Labels()),
		Bought: ledger.Bought{Provider: v.Provider, Region: v.Region, SKU: v.SKU, Category: v.Category}}
	k := lineKey{c.name(w, o.Job), v.Currency}
	pairOf(c.lines, k)[at].Add(v)
	pairOf(c.totals, v.Currency)[at].Add(v)
	if o.Job == "" {
		return
	}
	if c.jobs[v.Currency] == nil {
		c.jobs[v.Currency] = variance.Jobs{}
	}
	cost := c.jobs[v.Currency][o.Job]
	cost[at] = cost[at].Add(v.Amount)
	c.jobs[v.Currency][o.Job] = cost
}

func (c *comparison) answer() client.Why {
	v := client.Why{Before: client.WhySpan{Since: c.spans[0].Since, Until: c.spans[0].Until},
		After: client.WhySpan{Since: c.spans[1].Since, Until: c.spans[1].Until}, Lines: []client.WhyLine{},
		Between: []client.WhyLine{}, Jobs: []client.WhyJob{}}
	for _, cause := range variance.Causes {
		v.Causes = append(v.Causes, string(cause))
	}
	for k, p := range c.lines {
		v.Lines = append(v.Lines, p.line(k.name, k.currency))
	}
	slices.SortFunc(v.Lines, func(a, b client.WhyLine) int {
		return cmp.Or(size(b.Change).Cmp(size(a.Change)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Currency, b.Currency))
	})
	for _, currency := range slices.Sorted(maps.Keys(c.totals)) {
		t := c.totals[currency].line("", currency)
		v.Totals = append(v.Totals, t)
		if rest, some := unexplained(t, v.Lines); some {
			v.Between = append(v.Between, rest)
		}
		for _, j := range c.jobs[currency].Most(mostMoved) {
			v.Jobs = append(v.Jobs, client.WhyJob{Job: j.Job, Currency: currency, Before: j.Before, After: j.After,
				Change: j.Change()})
		}
	}
	return v
}

// unexplained returns the parts of a total that its lines do not explain, and whether there are any.
func unexplained(total client.WhyLine, lines []client.WhyLine) (rest client.WhyLine, some bool) {
	rest = client.WhyLine{Currency: total.Currency, Parts: maps.Clone(total.Parts)}
	for _, l := range lines {
		if l.Currency != total.Currency {
			continue
		}
		for cause, part := range l.Parts {
			rest.Parts[cause] = rest.Parts[cause].Sub(part)
		}
	}
	for _, part := range rest.Parts {
		some = some || !part.IsZero()
	}
	return rest, some
}

func size(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}
