package holdings

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/storage"
)

// Duplicates is the output of scrimp data duplicates.
type Duplicates struct {
	Currency   money.Currency `json:"currency"`
	Groups     []Same         `json:"groups"` // those of most bytes first
	Extra      int64          `json:"extra_bytes"`
	Month      *money.Amount  `json:"month"`                 // of the extra copies with a known price; null: none has one
	Unpriced   int64          `json:"unpriced_extra_bytes"`  // that Month does not contain
	Uncompared int64          `json:"uncompared_files"`      // changed meanwhile, unreadable, or too many
	Skipped    []Skipped      `json:"skipped"`               // entries of folders that were not read
	Jobs       int            `json:"jobs"`                  // whose inputs and kept files were compared
	Unread     []string       `json:"unread_jobs,omitempty"` // jobs whose files the server did not list, with the reason
}

// Same is a content that lies in several places.
type Same struct {
	Bytes  int64         `json:"bytes"` // of one copy
	Extra  int64         `json:"extra_bytes"`
	Month  *money.Amount `json:"month"` // of all copies but the dearest; null: a price is unknown
	Copies []Copy        `json:"copies"`
}

// Copy is one of the places of a content.
type Copy struct {
	Place  string        `json:"place"`
	Path   string        `json:"path,omitempty"`
	Month  *money.Amount `json:"month"`            // null: the price is unknown
	Remove string        `json:"remove,omitempty"` // the command that removes it
}

func (c Copy) name() string {
	if c.Path == "" {
		return c.Place
	}
	return strings.TrimSuffix(c.Place, "/") + "/" + c.Path
}

// DuplicatesOf prices groups of files with the same content. remove returns the command that removes a file.
func DuplicatesOf(places []storage.Place, prices storage.Prices, groups []storage.Duplicates,
	remove func(storage.File) string) Duplicates {
	v := Duplicates{Currency: prices.Currency, Groups: []Same{}, Skipped: []Skipped{}}
	sum, known := new(big.Rat), false
	for _, g := range groups {
		s := Same{Bytes: g.Files[0].Bytes, Extra: g.Extra()}
		v.Extra += s.Extra
		if month, ok := g.Month(places, prices); ok {
			s.Month, known = amount(month), true
			sum.Add(sum, month)
		} else {
			v.Unpriced += s.Extra
		}
		for _, f := range g.Files {
			c := Copy{Place: places[f.Place].Name, Path: f.Path, Remove: remove(f)}
			if month, ok := prices.Month(places[f.Place].Store, f); ok {
				c.Month = amount(month)
			}
			s.Copies = append(s.Copies, c)
		}
		v.Groups = append(v.Groups, s)
	}
	if known {
		v.Month = amount(sum)
	}
	return v
}

// unpriced formats an amount that may be unknown.
func unpriced(a *money.Amount, c money.Currency) string {
	if a == nil {
		return "unpriced"
	}
	return cents(a, c)
}

// Text formats the groups for people.
func (v Duplicates) Text(p show.Place) string {
	var b strings.Builder
	compared := draw.Count(v.Jobs, "job")
	if len(v.Groups) == 0 {
		b.WriteString(draw.Wrap("", "No content lies in two places, of "+compared+" and the folders given.", p.Columns()))
	}
	for _, g := range v.Groups[:min(mostGroups, len(v.Groups))] {
		b.WriteString(draw.Wrap("", fmt.Sprintf("%s in %s: %s more than once, %s a month", show.Bytes(g.Bytes),
			draw.Count(len(g.Copies), "place"), show.Bytes(g.Extra), unpriced(g.Month, v.Currency)), p.Columns()))
		names := len(g.Copies) // a pipe gets all
		if p.Width > 0 {
			names = min(mostNames, names)
		}
		for _, c := range g.Copies[:names] {
			b.WriteString(draw.Wrap("  ", show.Clean(c.name()), p.Columns()))
			if c.Remove != "" {
				b.WriteString(draw.Wrap("    ", show.Clean(c.Remove), p.Columns()))
			}
		}
		if n := len(g.Copies) - names; n > 0 {
			fmt.Fprintf(&b, "  and %d more; --json lists all\n", n)
		}
	}
	if n := len(v.Groups) - mostGroups; n > 0 {
		fmt.Fprintf(&b, "and %s; --json lists all\n", draw.Count(n, "smaller group"))
	}
	if len(v.Groups) > 0 {
		text := fmt.Sprintf("%s in copies beyond the first", show.Bytes(v.Extra))
		if v.Month != nil {
			text += ", " + cents(v.Month, v.Currency) + " a month"
		}
		if v.Unpriced > 0 {
			text += fmt.Sprintf("; %s of that is unpriced: --price FILE gives a price", show.Bytes(v.Unpriced))
		}
		b.WriteString("\n" + draw.Wrap("", text+".", p.Columns()))
	}
	v.missed(&b, p)
	return b.String()
}

// missed says what was not compared.
func (v Duplicates) missed(b *strings.Builder, p show.Place) {
	if v.Uncompared > 0 {
		b.WriteString(draw.Wrap("", fmt.Sprintf("The contents of %d files were not compared.", v.Uncompared), p.Columns()))
	}
	for _, s := range v.Skipped {
		b.WriteString(draw.Wrap("", fmt.Sprintf("Not read: %d × %s.", s.Count, s.Why), p.Columns()))
	}
	for _, text := range v.Unread[:min(mostNames, len(v.Unread))] {
		b.WriteString(draw.Wrap("", "Not compared: "+show.Clean(text), p.Columns()))
	}
}
