// Package holdings formats what scrimp storage found: what lies where, what it costs, and what the rules save.
package holdings

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/sheet"
	"scrimp/internal/work/storage"
)

// Use is what lies in a place, of a kind and in a storage class.
type Use struct {
	Place    string        `json:"place,omitempty"`
	Kind     string        `json:"kind"`
	Class    string        `json:"class,omitempty"`
	Files    int64         `json:"files"`
	Bytes    int64         `json:"bytes"`
	Unused   int64         `json:"unused_90d_bytes"`
	LastUsed *time.Time    `json:"last_used"`
	Month    *money.Amount `json:"month"` // null: unknown
}

// Move is what a rule does.
type Move struct {
	Rule   int           `json:"rule"` // from 1
	Text   string        `json:"text"`
	Action string        `json:"action"`
	Place  string        `json:"place"`
	Class  string        `json:"class"`
	Files  int64         `json:"files"`
	Bytes  int64         `json:"bytes"`
	Saved  *money.Amount `json:"saved_month"` // null: unknown
	Once   *money.Amount `json:"once"`        // cost of a move; null for deletions
	Why    string        `json:"why,omitempty"`
	Least  int64         `json:"least_bytes,omitempty"` // smaller objects stay
}

// Stay counts the files that no rule touches, by reason.
type Stay struct {
	Reason string `json:"reason"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Copies are files with the same contents.
type Copies struct {
	Files int           `json:"files"`
	Bytes int64         `json:"bytes"` // of one
	Extra int64         `json:"extra_bytes"`
	Month *money.Amount `json:"month"` // of all but one; null: unknown
	Names []string      `json:"names"` // some of them
}

// Skipped counts entries that were not read, and names some.
type Skipped struct {
	Why   string   `json:"why"`
	Count int64    `json:"count"`
	Names []string `json:"names"`
}

// Scan is the output of scrimp storage PATH.
type Scan struct {
	Currency   money.Currency `json:"currency"`
	Uses       []Use          `json:"uses"`
	Month      *money.Amount  `json:"month"` // of what has a known price; null: nothing has
	Unknown    int64          `json:"files_of_unknown_cost"`
	Moves      []Move         `json:"moves"`
	Saved      *money.Amount  `json:"saved_month"` // as far as known; null: nothing is
	Stays      []Stay         `json:"stays"`
	Copies     []Copies       `json:"duplicates"` // the largest
	Groups     int            `json:"duplicate_groups"`
	Extra      int64          `json:"duplicate_bytes"`
	Uncompared int64          `json:"uncompared_files"`
	Skipped    []Skipped      `json:"skipped"`
	Hidden     int            `json:"hidden_jobs"` // of other teams, whose needs are unknown
	Deletes    int            `json:"deletes"`
	Freed      int64          `json:"deletes_bytes"`
	Digest     string         `json:"digest"`         // of the plan
	Plan       string         `json:"plan,omitempty"` // file of the plan
	Remarks    []string       `json:"remarks"`        // on rules that can do nothing
	Standard   bool           `json:"standard_rules"` // the user has given no rules
	places     []string
}

// amount rounds an exact sum to units of 1e-12; nil stays nil. Sizes and prices are bounded, so every sum fits.
func amount(v *big.Rat) *money.Amount {
	if v == nil {
		return nil
	}
	a, _ := sheet.Amount(v)
	return &a
}

// most bounds the groups of copies, and the names of each, in the output.
const (
	mostGroups = 20
	mostNames  = 5
)

// Of summarizes the result of a scan.
func Of(places []storage.Place, rules []storage.Rule, prices storage.Prices, r storage.Result,
	copies []storage.Duplicates) Scan {
	v := Scan{Currency: prices.Currency, Month: amount(r.Total()), Saved: amount(r.Saved()), Unknown: r.Unknown,
		Uses: []Use{}, Moves: []Move{}, Stays: []Stay{}, Copies: []Copies{}, Skipped: []Skipped{}, Groups: len(copies),
		Deletes: len(r.Victims), Remarks: remarks(places, rules, prices)}
	for _, p := range places {
		v.places = append(v.places, p.Name)
	}
	for _, u := range r.Usage {
		used := u.Used.UTC()
		v.Uses = append(v.Uses, Use{places[u.Place].Name, string(u.Kind), u.Class, u.Files, u.Bytes, u.Unused, &used,
			amount(u.Month)})
	}
	for _, m := range r.Moves {
		rule := rules[m.Rule]
		v.Moves = append(v.Moves, Move{m.Rule + 1, rule.String(), rule.Action, places[m.Place].Name, m.Class, m.Files,
			m.Bytes, amount(m.Saved), amount(m.Once), string(m.Why), m.Least})
	}
	for _, s := range r.Stays {
		v.Stays = append(v.Stays, Stay{string(s.Reason), s.Files, s.Bytes})
	}
	for _, x := range r.Victims {
		v.Freed += x.Disk()
	}
	for i, d := range copies {
		v.Extra += d.Extra()
		if i >= mostGroups {
			continue
		}
		c := Copies{Files: len(d.Files), Bytes: d.Files[0].Bytes, Extra: d.Extra()}
		if month, ok := d.Month(places, prices); ok {
			c.Month = amount(month)
		}
		for _, f := range d.Files[:min(mostNames, len(d.Files))] {
			c.Names = append(c.Names, places[f.Place].Name+"/"+f.Path)
		}
		v.Copies = append(v.Copies, c)
	}
	return v
}

// cents formats an amount, with three digits if it is less than a cent, or "unknown".
func cents(a *money.Amount, c money.Currency) string {
	if a == nil {
		return "unknown"
	}
	if f := a.Float(); f != 0 && f > -0.01 && f < 0.01 {
		return money.Short(*a, c)
	}
	return money.Format(*a, c, 2)
}

// Text formats the result for people.
func (v Scan) Text(p show.Place) string {
	var b strings.Builder
	if len(v.Uses) == 0 {
		b.WriteString("No files.\n")
	}
	for _, place := range v.places {
		v.uses(&b, place, p)
	}
	if len(v.Uses) > 0 {
		text := "A month costs " + cents(v.Month, v.Currency)
		switch {
		case v.Month == nil:
			text = "The cost of a month is unknown: --price FILE gives a price"
		case v.Unknown > 0:
			text += fmt.Sprintf(", without %d files of unknown cost: --price FILE gives their price", v.Unknown)
		}
		b.WriteString("\n" + draw.Wrap("", text+".", p.Columns()))
	}
	v.moves(&b, p)
	v.stays(&b, p)
	v.copies(&b, p)
	for _, s := range v.Skipped {
		text := fmt.Sprintf("Not read: %d × %s: %s", s.Count, s.Why, show.Clean(strings.Join(s.Names, ", ")))
		if int64(len(s.Names)) < s.Count {
			text += " and others"
		}
		b.WriteString("\n" + draw.Wrap("", text+".", p.Columns()))
	}
	v.next(&b, p)
	return b.String()
}

func (v Scan) uses(b *strings.Builder, place string, p show.Place) {
	var rows [][]string
	for _, u := range v.Uses {
		if u.Place == place {
			rows = append(rows, []string{u.Kind, u.Class, fmt.Sprint(u.Files), show.Bytes(u.Bytes), show.Bytes(u.Unused),
				p.When(*u.LastUsed), cents(u.Month, v.Currency)})
		}
	}
	if len(rows) == 0 {
		return
	}
	b.WriteString(draw.Wrap("", show.Clean(place), p.Columns()))
	b.WriteString(draw.Grid([]draw.Column{{Name: "KIND", Key: true}, {Name: "CLASS", Leaves: 2},
		{Name: "FILES", Right: true}, {Name: "SIZE", Right: true}, {Name: "UNUSED 90D", Right: true, Leaves: 1},
		{Name: "LAST USED", Leaves: 3}, {Name: "A MONTH", Right: true}}, rows, p.Columns()))
}

func (v Scan) moves(b *strings.Builder, p show.Place) {
	if len(v.Moves) == 0 {
		b.WriteString("\n" + draw.Wrap("", "No rule changes a file.", p.Columns()))
		return
	}
	var rows [][]string
	var more []string
	for _, m := range v.Moves {
		what := m.Text
		if m.Why == string(storage.CostsMore) {
			what = "NOT: " + what
			dearer := m.Saved.Neg()
			more = append(more, fmt.Sprintf("scrimp does not propose rule %d: the new class costs %s a month more, with reads "+
				"and the minimum duration.", m.Rule, cents(&dearer, v.Currency)))
		}
		once := "-"
		if m.Once != nil {
			once = money.Short(*m.Once, v.Currency)
		}
		rows = append(rows, []string{fmt.Sprint(m.Rule), cents(m.Saved, v.Currency), once, fmt.Sprint(m.Files),
			show.Bytes(m.Bytes), show.Clean(what)})
	}
	columns := []draw.Column{{Name: "RULE", Right: true, Key: true}, {Name: "SAVES A MONTH", Right: true},
		{Name: "ONCE", Right: true, Leaves: 1}, {Name: "FILES", Right: true}, {Name: "SIZE", Right: true},
		{Name: "WHAT", Least: 16}}
	if v.Standard { // the user knows no numbers of these rules
		columns = columns[1:]
		columns[len(columns)-1].Key = true
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	b.WriteString("\n" + draw.Grid(columns, rows, p.Columns()))
	text := "The rules save " + cents(v.Saved, v.Currency) + " a month"
	if v.Saved == nil {
		text = "What the rules save is unknown"
	}
	for _, m := range v.Moves {
		if m.Saved == nil && v.Saved != nil {
			text += ", and an unknown amount for files without a price"
			break
		}
	}
	b.WriteString(draw.Wrap("", text+".", p.Columns()))
	for _, text := range more {
		b.WriteString(draw.Wrap("", text, p.Columns()))
	}
}

func (v Scan) copies(b *strings.Builder, p show.Place) {
	if v.Groups == 0 {
		return
	}
	var rows [][]string
	for _, c := range v.Copies {
		rows = append(rows, []string{fmt.Sprint(c.Files), show.Bytes(c.Extra), cents(c.Month, v.Currency),
			show.Clean(strings.Join(c.Names, ", "))})
	}
	fmt.Fprintf(b, "\n%s", draw.Wrap("", fmt.Sprintf("%s of files with the same contents, %s in all but one of each:",
		draw.Count(v.Groups, "group"), show.Bytes(v.Extra)), p.Columns()))
	b.WriteString(draw.Grid([]draw.Column{{Name: "FILES", Right: true, Key: true}, {Name: "EXTRA", Right: true},
		{Name: "A MONTH", Right: true}, {Name: "NAMES", Least: 16}}, rows, p.Columns()))
}

// next says what the user can do.
func (v Scan) next(b *strings.Builder, p show.Place) {
	if v.Uncompared > 0 {
		b.WriteString(draw.Wrap("", fmt.Sprintf("The contents of %d files were not compared.", v.Uncompared), p.Columns()))
	}
	if v.Hidden > 0 {
		b.WriteString(draw.Wrap("", fmt.Sprintf("%d live jobs and groups of other teams are hidden from you: --keep PATH "+
			"keeps what they need.", v.Hidden), p.Columns()))
	}
	if v.Deletes == 0 {
		return
	}
	text := fmt.Sprintf("Nothing was changed. The plan %.12s deletes %s, %s: ", v.Digest,
		draw.Count(v.Deletes, "file"), show.Bytes(v.Freed))
	if v.Plan == "" {
		text += "--plan FILE writes it."
	} else {
		text += "scrimp storage --apply " + show.Clean(v.Plan) + " deletes them."
	}
	b.WriteString("\n" + draw.Wrap("", text, p.Columns()))
}

// Applied is the output of scrimp storage --apply.
type Applied struct {
	Digest string `json:"digest"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Text formats the result for people.
func (v Applied) Text(p show.Place) string {
	return draw.Wrap("", fmt.Sprintf("Deleted %s, %s, of the plan %.12s.", draw.Count(int(v.Files), "file"),
		show.Bytes(v.Bytes), v.Digest),
		p.Columns())
}
