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
	Provider string      `json:"provider"`
	Account  string      `json:"account"`
	Month    string      `json:"month"` // such as 2026-10
	Lines    int         `json:"lines"`
	Unread   int         `json:"unread_rows"`
	Totals   []BillTotal `json:"totals"`
	Since    time.Time   `json:"since"` // of the first charge
	Until    time.Time   `json:"until"`
	Digest   string      `json:"digest"` // SHA-256 of its lines
	File     string      `json:"file"`   // SHA-256 of the import that it came with
	Names    []string    `json:"names"`  // of the imported files
	Imported time.Time   `json:"imported"`
	By       string      `json:"by"`
	Closed   bool        `json:"closed"` // its month is closed
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
}

// SetBillMonth closes or reopens a month.
type SetBillMonth struct {
	Month  string `json:"month"`
	Closed bool   `json:"closed"`
}

// BookBills asks to book the differences between the bills of a month and the ledger.
type BookBills struct {
	Month string `json:"month"` // such as 2026-10
}

// Bills lists the imported bills.
func (c *Client) Bills(ctx context.Context) (Bills, error) {
	return ask[Bills](ctx, c, http.MethodGet, "/v1/bills", nil)
}

// ImportBills sends the rows of bills as JSON lines in gzip, and the names of the files that they come from.
func (c *Client) ImportBills(ctx context.Context, names []string, rows io.Reader) ([]ImportedBill, error) {
	r, err := c.Open(ctx, http.MethodPost, "/v1/bills?"+url.Values{"name": names}.Encode(), "application/gzip", rows)
	if err != nil {
		return nil, err
	}
	return decode[[]ImportedBill](r)
}

// SetBillMonth closes or reopens a month for bills.
func (c *Client) SetBillMonth(ctx context.Context, month string, closed bool) error {
	return c.Do(ctx, http.MethodPut, "/v1/bills/months", SetBillMonth{month, closed}, nil)
}
