package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Dimensions are the dimensions that costs are listed by, without the job. User and Kind come from the job, not
// from postings; empty means nobody's.
type Dimensions struct {
	Team    string `json:"team,omitempty"`
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Tags    string `json:"tags,omitempty"` // in the form of TagText
	Rule    string `json:"rule,omitempty"` // rule of postings without a job, such as unused reserved time
	Bought
}

// Bought identifies a purchase and its seller; empty fields are not stated.
type Bought struct {
	Provider string   `json:"provider,omitempty"`
	Region   string   `json:"region,omitempty"`
	SKU      string   `json:"sku,omitempty"`
	Category Category `json:"category,omitempty"`
}

// TagText encodes tags as one string, sorted by name, so that equal tags give equal strings.
func TagText(tags map[string]string) string {
	if len(tags) == 0 {
		return ""
	}
	b := make([]byte, 0, 64)
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		b = append(strconv.AppendQuote(b, k), '=')
		b = append(strconv.AppendQuote(b, tags[k]), '\n')
	}
	return string(b)
}

// Tag returns the value of a tag in the output of TagText, or "" if it is missing.
func (w Dimensions) Tag(name string) string {
	head := fmt.Sprintf("%q=", name)
	for line := range strings.Lines(w.Tags) {
		if rest, ok := strings.CutPrefix(line, head); ok {
			v, _ := strconv.Unquote(strings.TrimSuffix(rest, "\n")) // TagText has quoted it
			return v
		}
	}
	return ""
}

// Owner returns an owner with the team, project and tags.
func (w Dimensions) Owner() Owner {
	o := Owner{Team: w.Team, Project: w.Project}
	for line := range strings.Lines(w.Tags) {
		if key, err := strconv.QuotedPrefix(line); err == nil {
			if o.Tags == nil {
				o.Tags = map[string]string{}
			}
			k, _ := strconv.Unquote(key)
			o.Tags[k], _ = strconv.Unquote(strings.TrimSuffix(line[len(key)+1:], "\n"))
		}
	}
	return o
}

// DimensionsOf returns the dimensions of a posting; user and kind are those of its job.
func DimensionsOf(p Posting, user, kind string) Dimensions {
	w := Dimensions{Team: p.Owner.Team, Project: p.Owner.Project, User: user, Kind: kind, Tags: TagText(p.Owner.Labels())}
	if p.Owner.Job == "" {
		w.Rule = p.Rule
	}
	if p.Idles() {
		w.Rule = IdleRule
		if _, extra := Extra(p.Rule); extra {
			w.Rule = IdleExtraRule
		}
	}
	w.Bought = Bought{p.Provider, p.Region, p.SKU, p.Category}
	return w
}

// IdleRule marks the cost of idle machines, and IdleExtraRule the tax, credits and commitments that a bill adds to it.
const (
	IdleRule      = "idle_machine"
	IdleExtraRule = "idle_machine_extra"
)

// Idles reports whether the posting is about an idle machine.
func (p Posting) Idles() bool {
	return p.Owner.Job == "" && strings.Contains(p.Owner.Task, "/idle.")
}

// Parts calls f with what the posting adds to each use of cost; it may move cost from one use to another. It does
// not call f for a posting without cost.
func (p Posting) Parts(f func(Use, money.Amount)) {
	if _, use, ok := p.To.IsCost(); ok {
		f(use, p.Amount)
	}
	if _, use, ok := p.From.IsCost(); ok {
		f(use, p.Amount.Neg())
	}
}

// Invoiced is the column of sums that holds what providers have billed. It is not a Use.
const Invoiced Use = "(invoiced)"

// Invoiced returns the amount that the posting moves from owed to billed; a correction may be negative.
func (p Posting) Invoiced() (a money.Amount, is bool) {
	from, to := strings.HasPrefix(string(p.From), "invoice/"), strings.HasPrefix(string(p.To), "invoice/")
	if to {
		return p.Amount.Neg(), !from
	}
	return p.Amount, from
}

// Sums are running sums of postings by dimensions, currency, use and the hour of booking. They are a view of the
// log: Add takes its postings in order, and queries give exactly the result of a scan of all postings
// (TestSums_MatchAWalkOverAllPostings).
type Sums struct {
	whose   []Dimensions
	numbers map[Dimensions]int32
	columns []Column
	column  map[Column]int32
	cells   *Calendar[cell, money.Amount]
	events  map[int64]Events // events of the postings, by hour
	forgot  int64            // days before this one are summed only as a whole
	last    uint64
	hash    Hash
	n       int
}

// Column separates sums by currency and use.
type Column struct {
	Currency money.Currency `json:"currency"`
	Use      Use            `json:"use"`
}

type cell struct{ whose, column int32 }

// Cut is the part of a query that begins within a summed span: the events of its postings. The caller adds the
// postings that Holds selects.
type Cut struct {
	Events
	From, Until time.Time // time of booking; Until is exclusive
}

// Holds reports whether a posting is in the cut.
func (c Cut) Holds(p Posting) bool { return !p.At.Before(c.From) && p.At.Before(c.Until) }

// Events are the first and the last event of some postings. Other events may lie between them.
type Events struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// NewSums returns empty sums.
func NewSums() *Sums {
	return &Sums{numbers: map[Dimensions]int32{}, column: map[Column]int32{}, cells: NewCalendar[cell](money.Amount.Add),
		events: map[int64]Events{}}
}

// Add adds a posting; user and kind are those of its job.
func (s *Sums) Add(p Posting, user, kind string) {
	hour := HourOf(p.At)
	p.Parts(func(u Use, a money.Amount) {
		s.add(hour, s.number(DimensionsOf(p, user, kind)), s.columnOf(Column{p.Currency, u}), a)
	})
	if a, is := p.Invoiced(); is {
		s.add(hour, s.number(DimensionsOf(p, user, kind)), s.columnOf(Column{p.Currency, Invoiced}), a)
	}
	s.saw(hour, Events{p.Event, p.Event})
	s.last, s.hash, s.n = p.Event, p.Hash, s.n+1
}

func (s *Sums) add(hour int64, whose, column int32, a money.Amount) {
	s.cells.Add(hour, cell{whose, column}, a)
}

func (s *Sums) saw(hour int64, e Events) {
	if old, ok := s.events[hour]; ok {
		e = Events{min(old.First, e.First), max(old.Last, e.Last)}
	}
	s.events[hour] = e
}

func (s *Sums) number(w Dimensions) int32 {
	n, ok := s.numbers[w]
	if !ok {
		n = int32(len(s.whose))
		s.whose, s.numbers[w] = append(s.whose, w), n
	}
	return n
}

func (s *Sums) columnOf(c Column) int32 {
	n, ok := s.column[c]
	if !ok {
		n = int32(len(s.columns))
		s.columns, s.column[c] = append(s.columns, c), n
	}
	return n
}

// Len returns the number of postings added.
func (s *Sums) Len() int { return s.n }

// Head returns the event and the hash of the last posting, or 0 if there is none.
func (s *Sums) Head() (event uint64, hash Hash) { return s.last, s.hash }

// Dimensions returns all dimensions with postings. Since passes indexes into this slice.
func (s *Sums) Dimensions() []Dimensions { return s.whose }

// Forget drops the hourly sums of days that ended before t and keeps the daily ones. For a span that begins within
// such a day, Since returns a Cut.
func (s *Sums) Forget(t time.Time) {
	if day := dayOf(HourOf(t)); day > s.forgot {
		s.forgot = day
		s.cells.forget(day)
	}
}

// Since calls f with what was booked at t or later, by index into Dimensions, in parts that add up; the zero time
// covers everything. If t cuts an hour, or a day without hourly sums, the rest of that span is missing from the
// parts, and cut identifies its postings.
func (s *Sums) Since(t time.Time, f func(whose int, c Column, a money.Amount)) (cut Cut, isCut bool) {
	tell := func(c cell, a money.Amount) { f(int(c.whose), s.columns[c.column], a) }
	if t.IsZero() {
		s.cells.All(tell)
		return cut, false
	}
	first := HourOf(t)
	next, whole := first, time.Unix(first*3600, 0).Equal(t)
	if !whole {
		next++
	}
	if day := dayOf(first); day < s.forgot && (!whole || first != day*24) {
		next = (day + 1) * 24
	}
	if next%24 == 0 {
		s.cells.SinceDay(dayOf(next), tell)
	} else {
		s.cells.Since(next, tell)
	}
	cut.From, cut.Until = t, time.Unix(next*3600, 0)
	for hour := first; hour < next; hour++ {
		if e, ok := s.events[hour]; ok {
			if isCut {
				e = Events{min(e.First, cut.First), max(e.Last, cut.Last)}
			}
			cut.Events, isCut = e, true
		}
	}
	return cut, isCut
}

// From returns the first event with a posting that may be at t or later. ok is false if there is none.
func (s *Sums) From(t time.Time) (first uint64, ok bool) {
	for hour, e := range s.events {
		if hour >= HourOf(t) && (!ok || e.First < first) {
			first, ok = e.First, true
		}
	}
	return first, ok
}

// stored is the stored form of Sums. Cells have dimension, column and amount.
type stored struct {
	Dimensions []Dimensions `json:"whose"`
	Columns    []Column     `json:"columns"`
	Hours      []storedHour `json:"hours"`
	Last       uint64       `json:"last"`
	Hash       Hash         `json:"hash"`
	N          int          `json:"postings"`
}

type storedHour struct {
	Hour int64 `json:"hour"`
	Events
	Cells []storedCell `json:"cells"`
}

type storedCell struct {
	Dimension int32        `json:"w"`
	Column    int32        `json:"c"`
	Amount    money.Amount `json:"a"`
}

// MarshalJSON encodes the sums for ReadPiece. Equal sums give equal bytes if their postings came in the same order.
func (s *Sums) MarshalJSON() ([]byte, error) {
	v := stored{Dimensions: s.whose, Columns: s.columns, Last: s.last, Hash: s.hash, N: s.n}
	for _, hour := range slices.Sorted(maps.Keys(s.events)) {
		h := storedHour{Hour: hour, Events: s.events[hour]}
		for c, a := range s.cells.hours[hour] {
			h.Cells = append(h.Cells, storedCell{c.whose, c.column, a})
		}
		slices.SortFunc(h.Cells, func(a, b storedCell) int {
			return cmp.Or(cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Column, b.Column))
		})
		v.Hours = append(v.Hours, h)
	}
	return json.Marshal(v)
}

// Piece is decoded sums.
type Piece struct{ v stored }

// ReadPiece decodes the output of MarshalJSON.
func ReadPiece(text []byte) (Piece, error) {
	var v stored
	if err := json.Unmarshal(text, &v); err != nil {
		return Piece{}, fmt.Errorf("read kept sums: %w", err)
	}
	for _, h := range v.Hours {
		for _, c := range h.Cells {
			if c.Dimension < 0 || int(c.Dimension) >= len(v.Dimensions) || c.Column < 0 || int(c.Column) >= len(v.Columns) {
				return Piece{}, fmt.Errorf("read kept sums: a cell has dimension %d and column %d, which do not "+
					"exist", c.Dimension, c.Column)
			}
		}
	}
	return Piece{v}, nil
}

// Head returns the event and the hash of its last posting.
func (p Piece) Head() (event uint64, hash Hash) { return p.v.Last, p.v.Hash }

// Until returns the end of its last hour.
func (p Piece) Until() (t time.Time) {
	for _, h := range p.v.Hours {
		if end := time.Unix((h.Hour+1)*3600, 0); end.After(t) {
			t = end
		}
	}
	return t
}

// Merge adds the sums of the postings that follow those in s.
func (s *Sums) Merge(p Piece) {
	numbers, columns := make([]int32, len(p.v.Dimensions)), make([]int32, len(p.v.Columns))
	for i, w := range p.v.Dimensions {
		numbers[i] = s.number(w)
	}
	for i, c := range p.v.Columns {
		columns[i] = s.columnOf(c)
	}
	for _, h := range p.v.Hours {
		s.saw(h.Hour, h.Events)
		for _, c := range h.Cells {
			s.add(h.Hour, numbers[c.Dimension], columns[c.Column], c.Amount)
		}
	}
	s.last, s.hash, s.n = p.v.Last, p.v.Hash, s.n+p.v.N
}
