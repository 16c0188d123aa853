// Package bill has the lines, problems and sums of the bills of cloud providers. It keeps every digit: the amounts of
// lines and problems add up to the file's total.
package bill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
)

// Category is the purpose of a line.
type Category string

// The categories. Credit is a promotion or discount of the provider, Refund a repayment. Commitment is the cost of
// reservations and savings plans themselves, and their deductions.
const (
	Compute    Category = "compute"
	Storage    Category = "storage"
	Address    Category = "address"
	Transfer   Category = "transfer"
	Support    Category = "support"
	Commitment Category = "commitment"
	Other      Category = "other"
	Tax        Category = "tax"
	Credit     Category = "credit"
	Refund     Category = "refund"
)

// Categories lists all categories in table order.
var Categories = []Category{Compute, Storage, Address, Transfer, Support, Commitment, Other, Tax, Credit, Refund}

// Number is a number of a bill. An empty cell or a missing column is unknown, not zero.
type Number struct {
	Value decimal.Decimal
	Known bool
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (n *Number) UnmarshalJSON(text []byte) error {
	if *n = (Number{}); string(text) == "null" {
		return nil
	}
	n.Known = true
	return json.Unmarshal(text, &n.Value)
}

// MarshalJSON writes null for an unknown number.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known {
		return []byte("null"), nil
	}
	return []byte(`"` + n.Value.String() + `"`), nil
}

// Line is a charge of a bill.
type Line struct {
	At          int             `json:"at"` // line of the file, or row of a Parquet file
	Provider    string          `json:"provider,omitempty"`
	Account     string          `json:"account,omitempty"`
	Invoice     string          `json:"invoice,omitempty"`
	Service     string          `json:"service,omitempty"`
	SKU         string          `json:"sku,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    Category        `json:"category"`
	Region      string          `json:"region,omitempty"`
	Resource    string          `json:"resource,omitempty"`
	Job         string          `json:"job,omitempty"` // from the tags that scrimp gives to machines
	Attempt     string          `json:"attempt,omitempty"`
	TagsUnread  bool            `json:"tags_unread,omitempty"` // the row's tags have an unknown format
	Untagged    bool            `json:"-"`                     // the file has a column of tags, and the row has none
	Correction  bool            `json:"correction,omitempty"`  // for a period that was billed before
	Start       time.Time       `json:"start"`
	End         time.Time       `json:"end"`
	Quantity    Number          `json:"quantity"`
	UnitPrice   Number          `json:"unit_price"`
	Unit        string          `json:"unit,omitempty"`
	Billed      decimal.Decimal `json:"billed"`    // the invoiced amount
	ListCost    Number          `json:"list_cost"` // at public prices
	Effective   Number          `json:"effective"` // with commitments spread over their use
	Currency    money.Currency  `json:"currency"`
	PeriodStart time.Time       `json:"period_start,omitzero"` // of the bill; zero if the file does not say
	PeriodEnd   time.Time       `json:"period_end,omitzero"`
}

// Month returns the first moment of the month that the line is billed in, in UTC.
func (l *Line) Month() time.Time {
	t := l.PeriodStart
	if t.IsZero() {
		t = l.Start
	}
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// earliest and latest bound the times of a line.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// MostName bounds the provider and the account of a line in bytes, which name the bill.
const MostName = 200

// Check returns what is wrong with a line that another program has read.
func (l *Line) Check() error {
	size := l.Billed
	if size.Sign() < 0 {
		size = size.Neg()
	}
	switch {
	case l.Provider == "" || len(l.Provider) > MostName || len(l.Account) > MostName:
		return fmt.Errorf("the provider is missing, or provider or account have more than %d bytes", MostName)
	case !IsCurrency(l.Currency):
		return fmt.Errorf("%.20q is no currency such as USD", string(l.Currency))
	case !slices.Contains(Categories, l.Category):
		return fmt.Errorf("%.20q is no category", string(l.Category))
	case size.Cmp(Most) > 0:
		return errors.New("the amount is beyond 10^12")
	case l.End.Before(l.Start):
		return errors.New("the charge ends before it begins")
	}
	for _, t := range []time.Time{l.Start, l.End} {
		if t.Before(earliest) || t.After(latest) {
			return errors.New("the time is not between 1970 and 2200")
		}
	}
	if p := l.PeriodStart; !p.IsZero() && (p.Before(earliest) || p.After(latest)) {
		return errors.New("the billing period is not between 1970 and 2200")
	}
	return nil
}

// Problem is an unreadable row, or the premature end of a file.
type Problem struct {
	File     string         `json:"-"`
	Line     int            `json:"line"`
	Reason   string         `json:"reason"`
	Amount   Number         `json:"amount"` // the billed amount of the row, if readable
	Currency money.Currency `json:"currency"`
	Repeats  int            `json:"repeats,omitempty"` // the earlier line that the row repeats
	Also     string         `json:"-"`                 // the earlier file that has the row, in place of this one
	About    *About         `json:"about,omitempty"`   // nil: it is not known what the row charges
}

// About tells what an unreadable row charges, if its cells are whole.
type About struct {
	SKU         string `json:"sku,omitempty"`
	Description string `json:"description,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Job         string `json:"job,omitempty"`
	Attempt     string `json:"attempt,omitempty"`
	TagsUnread  bool   `json:"tags_unread,omitempty"`
}

// Row is the result of one row of the file: lines, or a problem.
type Row struct {
	Lines   []Line   `json:"lines,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Limits bound what a file may make the program hold or unpack.
type Limits struct {
	Record   int   // bytes per row
	Repeated int   // rows remembered to find duplicates, by text and by content; at most twice as many of each
	Unpacked int64 // bytes that any file may unpack to, regardless of its size
	Ratio    int64 // above Unpacked, the factor by which a file may unpack
}

// Default returns limits that providers' bills meet: CSV bills compress to a tenth, at best a fiftieth of their size.
func Default() Limits {
	return Limits{Record: 1 << 20, Repeated: 500_000, Unpacked: 64 << 20, Ratio: 200}
}

// Most bounds an amount, as in the ledger.
var Most, _ = decimal.Parse("1e12")
