package bill

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
)

// mostServices bounds the services that a summary distinguishes; the rest counts as one.
const mostServices = 2_000

// Rest names the services beyond the first 2,000.
const Rest = "(other services)"

// Part is a part of a bill.
type Part struct {
	Name   string          `json:"name"`
	Lines  int             `json:"lines"`
	Billed decimal.Decimal `json:"billed"`
}

// Known is the sum of the known values, unknown if there are none, and the number of lines without one.
type Known struct {
	Sum     Number `json:"sum"`
	Unknown int    `json:"unknown_lines"`
}

func (k *Known) add(n Number) {
	if !n.Known {
		k.Unknown++
		return
	}
	k.Sum = Number{k.Sum.Value.Add(n.Value), true}
}

// Total is a bill in one currency. File is Billed plus Unread: the sum of the file's own column.
type Total struct {
	Currency             money.Currency  `json:"currency"` // empty for rows with an unreadable currency
	File                 decimal.Decimal `json:"file_total"`
	Billed               decimal.Decimal `json:"billed"`   // in the readable lines
	Unread               decimal.Decimal `json:"not_read"` // in rows with problems
	List                 Known           `json:"list_cost"`
	Effective            Known           `json:"effective_cost"`
	Usage                decimal.Decimal `json:"before_tax_credits_refunds"`
	Tax                  decimal.Decimal `json:"tax"`
	Credits              decimal.Decimal `json:"credits"`
	Refunds              decimal.Decimal `json:"refunds"`
	Job                  Part            `json:"with_job_tag"`
	Attempt              Part            `json:"with_attempt_tag"`
	Categories           []Part          `json:"categories"`
	Services             []Part          `json:"services"`
	categories, services map[string]*Part
}

// Summary is the contents of a bill.
type Summary struct {
	File       string     `json:"file"`
	Kind       string     `json:"kind"`
	Start      *time.Time `json:"start"` // of the first charge; null if no row was read
	End        *time.Time `json:"end"`
	Rows       int        `json:"rows"`
	Lines      int        `json:"lines"` // a row of Google's has one more for each credit
	Problems   int        `json:"problem_rows"`
	Unknown    int        `json:"problem_rows_without_amount"`
	TagsUnread int        `json:"lines_with_unread_tags"`
	Lacks      []string   `json:"lacks"`
	Totals     []Total    `json:"totals"`
	totals     map[money.Currency]*Total
}

// Add counts a row.
func (s *Summary) Add(r Row) {
	s.Rows++
	if p := r.Problem; p != nil {
		s.Problems++
		if p.Amount.Known {
			t := s.total(p.Currency)
			t.Unread = t.Unread.Add(p.Amount.Value)
		} else {
			s.Unknown++
		}
	}
	for i := range r.Lines {
		s.add(&r.Lines[i])
	}
}

func (s *Summary) total(c money.Currency) *Total {
	if s.totals == nil {
		s.totals = map[money.Currency]*Total{}
	}
	if s.totals[c] == nil {
		s.totals[c] = &Total{Currency: c, categories: map[string]*Part{}, services: map[string]*Part{}}
	}
	return s.totals[c]
}

func (s *Summary) add(l *Line) {
	s.Lines++
	if l.TagsUnread {
		s.TagsUnread++
	}
	if s.Start == nil || l.Start.Before(*s.Start) {
		start := l.Start
		s.Start = &start
	}
	if s.End == nil || l.End.After(*s.End) {
		end := l.End
		s.End = &end
	}
	t := s.total(l.Currency)
	t.Billed = t.Billed.Add(l.Billed)
	t.List.add(l.ListCost)
	t.Effective.add(l.Effective)
	of := &t.Usage
	switch l.Category {
	case Tax:
		of = &t.Tax
	case Credit:
		of = &t.Credits
	case Refund:
		of = &t.Refunds
	default: // charges
	}
	*of = of.Add(l.Billed)
	if l.Job != "" {
		t.Job.add(l.Billed)
	}
	if l.Attempt != "" {
		t.Attempt.add(l.Billed)
	}
	part(t.categories, string(l.Category)).add(l.Billed)
	part(t.services, l.Service).add(l.Billed)
}

func (p *Part) add(billed decimal.Decimal) { p.Lines, p.Billed = p.Lines+1, p.Billed.Add(billed) }

func part(of map[string]*Part, name string) *Part {
	if of[name] == nil && len(of) >= mostServices {
		name = Rest
	}
	if of[name] == nil {
		of[name] = &Part{Name: name}
	}
	return of[name]
}

// Finish sorts the results: currencies by name, those with only problems last, categories in table order, services by
// cost.
func (s *Summary) Finish() {
	s.Totals = []Total{}
	for _, t := range s.totals {
		t.File = t.Billed.Add(t.Unread)
		t.Job.Name, t.Attempt.Name = "job", "attempt"
		t.Categories, t.Services = []Part{}, []Part{}
		for _, c := range Categories {
			if p := t.categories[string(c)]; p != nil {
				t.Categories = append(t.Categories, *p)
			}
		}
		for _, p := range t.services {
			t.Services = append(t.Services, *p)
		}
		slices.SortFunc(t.Services, func(a, b Part) int {
			return cmp.Or(b.Billed.Cmp(a.Billed), cmp.Compare(a.Name, b.Name))
		})
		s.Totals = append(s.Totals, *t)
	}
	slices.SortFunc(s.Totals, func(a, b Total) int {
		return cmp.Or(min(len(b.Categories), 1)-min(len(a.Categories), 1), cmp.Compare(a.Currency, b.Currency))
	})
}
