package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// Bill is an imported bill: what a provider asks of an account for a month.
type Bill struct {
	Provider string         `json:"provider"`
	Account  string         `json:"account"`
	Month    string         `json:"month"` // such as 2026-10
	Lines    int            `json:"lines"`
	Unread   int            `json:"unread_rows"`
	Currency money.Currency `json:"currency"` // of its lines; "" on a bill that an earlier version kept
	Totals   []BillTotal    `json:"totals"`
	Since    time.Time      `json:"since"` // of the first charge
	Until    time.Time      `json:"until"`
	Digest   string         `json:"digest"` // SHA-256 of its lines
	File     string         `json:"file"`   // SHA-256 of the import that it came with
	Names    []string       `json:"names"`  // of the imported files
	Imported time.Time      `json:"imported"`
	By       string         `json:"by"`
	Closed   bool           `json:"closed"` // its month is closed
}

// BillTotal is the sum of a bill in one currency, unread rows included.
type BillTotal struct {
	Currency money.Currency `json:"currency"`
	Amount   string         `json:"amount"` // exact; it may have more digits than an amount of the ledger
}

// ImportedBill is a bill, and what its import changed: new, same or replaced.
type ImportedBill struct {
	Bill
	Result string      `json:"result"`
	Before []BillTotal `json:"before"` // totals of the bill that it replaced
}

// RemoveBill names the bill to remove.
type RemoveBill struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
	Month    string `json:"month"`             // such as 2026-10
	DryRun   bool   `json:"dry_run,omitempty"` // say what would be removed, and remove nothing
}

// RemovedBill is a bill, and whether the request has removed it. The ledger keeps what was booked of it until the
// month is booked again.
type RemovedBill struct {
	Bill
	Removed bool `json:"removed"` // false: a dry run
}

// BillMonth is a month that is closed or reopened.
type BillMonth struct {
	Month  string    `json:"month"`
	Closed bool      `json:"closed"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Bills lists the imported bills and the closed months.
type Bills struct {
	Bills  []Bill      `json:"bills"`
	Closed []BillMonth `json:"closed"`
	// Exports lists the exports that the server fetches by itself.
	Exports []BillExport `json:"exports"`
}

// BillExport is the export of a bill that the server fetches for an engine.
type BillExport struct {
	Engine  string       `json:"engine"`
	From    string       `json:"from"`             // such as s3://my-exports/cur/daily
	Every   float64      `json:"every_s"`          // seconds between two fetches
	Tried   time.Time    `json:"tried,omitzero"`   // the last time; zero: never
	Fetched time.Time    `json:"fetched,omitzero"` // the last time that the bucket was read; zero: never
	Next    time.Time    `json:"next,omitzero"`    // zero: the server does not fetch now
	Error   string       `json:"error,omitempty"`  // why the bucket was not read the last time
	Periods []BillPeriod `json:"periods"`          // newest first
}

// BillPeriod is a billing period of an export.
type BillPeriod struct {
	Month    string    `json:"month"`             // such as 2026-10
	Export   string    `json:"export"`            // its name
	Parts    int       `json:"parts"`             // files
	Imported time.Time `json:"imported,omitzero"` // the last time; zero: never
	Unread   int       `json:"unread_rows"`       // of the last import
	Problem  string    `json:"problem,omitempty"` // why its newest version is not imported
	Key      string    `json:"key,omitempty"`     // of the object that has the problem
}

// FetchBills asks to fetch the export of an engine now.
type FetchBills struct {
	Engine string `json:"engine"`
}

// RemoveBill removes a kept bill.
func (c *Client) RemoveBill(ctx context.Context, b RemoveBill) (RemovedBill, error) {
	return ask[RemovedBill](ctx, c, http.MethodPost, "/v1/bills/remove", b)
}

// SetBillMonth closes or reopens a month.
type SetBillMonth struct {
	Month  string `json:"month"`
	Closed bool   `json:"closed"`
}

// BillComparison compares the bills of a month with the ledger without earlier corrections.
type BillComparison struct {
	Month     string           `json:"month"`
	Totals    []ComparedBill   `json:"totals"` // by currency
	Gaps      []BillGap        `json:"gaps"`   // the largest first
	NeverOurs []BillLine       `json:"billed_but_never_ours"`
	NotBilled []BillLine       `json:"ours_not_billed_yet"`
	Others    []BillLine       `json:"of_other_months"`
	Unread    int              `json:"rows_without_amount"`
	AllUnread int              `json:"unread_rows"` // those without an amount included
	Bills     []BillName       `json:"bills"`
	Closed    bool             `json:"closed"` // nothing can be booked for the month
	Booked    bool             `json:"booked"` // the request has booked the differences
	Booking   []BillBooking    `json:"booking"`
	Waits     []WaitingMachine `json:"waits"`
}

// ComparedBill is the comparison in one currency. Amounts are exact decimals.
type ComparedBill struct {
	Currency    money.Currency    `json:"currency"`
	File        string            `json:"file_total"`
	Matched     BillSum           `json:"matched"`
	NeverOurs   BillSum           `json:"billed_but_never_ours"`
	NotOurs     BillSum           `json:"not_scrimps"`
	OtherMonths BillSum           `json:"of_other_months"`
	Repeated    BillSum           `json:"repeated"`
	Unread      BillSum           `json:"not_read"`
	Ours        string            `json:"ours"`
	NotBilled   BillSum           `json:"ours_not_billed_yet"`
	Gap         string            `json:"gap"`
	Parts       map[string]string `json:"parts"`
}

// BillSum is an exact amount and the number of its parts.
type BillSum struct {
	Count  int    `json:"count"`
	Amount string `json:"amount"`
}

// BillGap is a machine with its bill. The parts, such as price and tax, add up to the gap.
type BillGap struct {
	Instance string            `json:"instance"`
	Job      string            `json:"job"`
	Currency money.Currency    `json:"currency"`
	Ours     string            `json:"ours"`
	Billed   string            `json:"billed"`
	Gap      string            `json:"gap"`
	Parts    map[string]string `json:"parts"`
	Lines    int               `json:"lines"`
	By       string            `json:"by"` // how its lines were found: id, tag, time
	Notes    []string          `json:"notes,omitempty"`
}

// BillLine is a line or a machine without a partner.
type BillLine struct {
	Line     int            `json:"line,omitempty"`
	Resource string         `json:"resource"`
	Job      string         `json:"job,omitempty"`
	Amount   string         `json:"amount"`
	Currency money.Currency `json:"currency"`
	Why      string         `json:"why"`
}

// BillName identifies a bill.
type BillName struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
	Month    string `json:"month"`
}

// BillBooking is the correction of the ledger in one currency.
type BillBooking struct {
	Currency money.Currency `json:"currency"`
	Count    int            `json:"count"` // parts to book, or booked by this request
	Amount   money.Amount   `json:"amount"`
	Before   money.Amount   `json:"booked_before"`
}

// WaitingMachine is a machine whose difference cannot be booked yet.
type WaitingMachine struct {
	Instance string `json:"instance"`
	Why      string `json:"why"`
}

// BookBills asks to book the differences between the bills of a month and the ledger.
type BookBills struct {
	Month string `json:"month"` // such as 2026-10
}

// Bills lists the imported bills.
func (c *Client) Bills(ctx context.Context) (Bills, error) {
	return ask[Bills](ctx, c, http.MethodGet, "/v1/bills", nil)
}

// ImportBills sends the rows of bills as JSON lines in gzip, and the names of the files that they come from. Currency
// allows that the bills replace kept ones in another currency; it may be "".
func (c *Client) ImportBills(ctx context.Context, names []string, currency money.Currency, rows io.Reader) (
	[]ImportedBill, error) {
	q := url.Values{"name": names}
	if currency != "" {
		q.Set("currency", string(currency))
	}
	r, err := c.Open(ctx, http.MethodPost, "/v1/bills?"+q.Encode(), "application/gzip", rows)
	if err != nil {
		return nil, err
	}
	return decode[[]ImportedBill](r)
}

// SetBillMonth closes or reopens a month for bills.
func (c *Client) SetBillMonth(ctx context.Context, month string, closed bool) error {
	return c.Do(ctx, http.MethodPut, "/v1/bills/months", SetBillMonth{month, closed}, nil)
}

// FetchBills fetches the export of an engine's bill now.
func (c *Client) FetchBills(ctx context.Context, engine string) (BillExport, error) {
	return ask[BillExport](ctx, c, http.MethodPost, "/v1/bills/fetch", FetchBills{engine})
}
