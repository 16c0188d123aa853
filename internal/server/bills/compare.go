package bills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/reconcile"
)

// Ledger reads the charges of a span that a caller may see.
type Ledger interface {
	EachCharge(ctx context.Context, caller identity.Caller, span charge.Span, f func(charge.Charge) error) error
}

// Core takes the events of a booking.
type Core interface {
	Now() time.Time
	Propose(ctx context.Context, events ...core.Event) error
	Read(f func(*core.Machine)) (durable bool)
}

var _ Core = (*control.Control)(nil)

// everyone may see all teams: a bill covers the machines of all of them.
var everyone = identity.Caller{Grants: []identity.Grant{{Team: identity.Everywhere, Role: identity.Viewer}}}

// linesAtOnce bounds the lines of an event: a step of the core stays short.
const linesAtOnce = 100

// Compare compares the kept bills with the ledger and books nothing.
func (d *Service) Compare(w http.ResponseWriter, r *http.Request) {
	d.reconcile(w, r, r.URL.Query().Get("month"), false)
}

// Book books the differences.
func (d *Service) Book(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[client.BookBills](w, r)
	switch {
	case !ok:
	case b.Month == "": // what is booked is never a month that nobody named
		reply.FieldProblem(w, http.StatusBadRequest, "month", "the month is missing",
			"write the month to book, such as 2026-10", nil)
	default:
		d.reconcile(w, r, b.Month, true)
	}
}

func (d *Service) reconcile(w http.ResponseWriter, r *http.Request, month string, book bool) {
	span, ok := reports.MonthOf(w, month, d.Control.Now())
	if !ok {
		return
	}
	if month = span.Since.Format("2006-01"); book {
		d.setting.Lock() // nothing is imported or closed meanwhile
		defer d.setting.Unlock()
	}
	v, err := d.read(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	m, closed := v.closed(month)
	if book && closed {
		closedProblem(w, m)
		return
	}
	c, lines, after, err := d.compare(r.Context(), &v, span)
	c.Closed = closed
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reply.Problem(w, http.StatusConflict,
			"the rows of a bill are not in the server's data folder",
			"import its file again: scrimp bill list names it", err)
		return
	case err != nil:
		reports.Unread(w, "the bills were not compared", err)
		return
	case len(c.Bills) == 0 && len(lines) == 0: // lines without a bill reverse what a removed one has booked
		reply.FieldProblem(w, http.StatusNotFound, "month", "there is no bill of "+month,
			"scrimp bill import FILE keeps one, and scrimp bill list shows those there are", nil)
		return
	case book:
		if c.Booked = true; !d.book(w, r, month, lines, after) {
			return
		}
	}
	reply.JSON(w, c)
}

// compare reads the ledger and the bills. After is the newest booking that the ledger includes.
func (d *Service) compare(ctx context.Context, v *index, span charge.Span) (c trueup.Comparison,
	lines []core.ReconciledLine, after uint64, err error) {
	d.Control.Read(func(m *core.Machine) { after = m.State().Reconciled() })
	m := trueup.New(span.Since, span.Until)
	err = d.Ledger.EachCharge(ctx, everyone, span, func(c charge.Charge) error { return m.Charge(&c) })
	if err != nil {
		return c, nil, 0, err
	}
	var names []trueup.BillName
	files := map[string][]client.Bill{}
	month := span.Since.Format("2006-01")
	for _, b := range v.Bills {
		if b.Month == month || b.Since.Before(span.Until) && b.Until.After(span.Since) {
			files[b.File] = append(files[b.File], b)
			names = append(names, trueup.BillName{Provider: b.Provider, Account: b.Account, Month: b.Month})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := d.rows(ctx, file, files[file], span, m.Bills); err != nil {
			return c, nil, 0, err
		}
	}
	c, lines = m.Finish()
	c.Bills = reply.List(names)
	return c, lines, after, nil
}

// rows adds the rows of the given bills of an import: those billed in the month, and late lines of other months about
// it. Rows of the same import that belong to other bills are left out.
func (d *Service) rows(ctx context.Context, file string, of []client.Bill, span charge.Span,
	to *reconcile.Books) error {
	f, err := os.Open(filepath.Join(d.folder(), file+suffix))
	if err != nil {
		return fmt.Errorf("read the bill %s of %s: %w", cmp.Or(of[0].Account, of[0].Provider), of[0].Month, err)
	}
	defer func() { _ = f.Close() }()
	month := span.Since.Format("2006-01")
	taken := func(l *bill.Line) bool {
		billed := l.Month().Format("2006-01")
		return slices.ContainsFunc(of, func(b client.Bill) bool {
			return b.Provider == l.Provider && b.Account == l.Account && b.Month == billed
		})
	}
	to.File()
	begun, last, n := false, false, 0 // last: the newest line was taken and billed in the month
	var early []bill.Row              // unread rows before the first line belong to its bill
	return eachRow(f, func(row bill.Row, _ []byte) error {
		if n++; n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var lines []bill.Line
		for i := range row.Lines {
			l := &row.Lines[i]
			here := l.Month().Format("2006-01") == month
			if last = taken(l) && here; last || taken(l) && span.Has(l.Start) {
				lines = append(lines, *l)
			}
			if begun = true; last {
				addRows(to, early)
			}
			early = nil
		}
		switch row.Lines = lines; {
		case !begun:
			early = append(early, row)
		case row.Problem == nil || last:
			to.Row(row)
		}
		return nil
	})
}

func addRows(to *reconcile.Books, rows []bill.Row) {
	for _, row := range rows {
		to.Row(row)
	}
}

// book passes the lines to the core, and answers if that fails. A booking that stops midway goes on with the next
// request: that compares the bills with what is booked by then.
func (d *Service) book(w http.ResponseWriter, r *http.Request, month string, lines []core.ReconciledLine,
	after uint64) (ok bool) {
	first := true
	for some := range slices.Chunk(lines, linesAtOnce) {
		e := d.Gate.Event(r, core.BillReconciled{Month: month, After: after, Lines: some})
		propose := d.Control.Propose
		if first {
			propose = func(_ context.Context, events ...core.Event) error {
				return d.Gate.ProposeWith(r, month, "book the bills", events...)
			}
		}
		first = false
		if err := propose(r.Context(), e); err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "the difference is not booked, or only in part",
				"book it again: what is booked counts once", err)
			return false
		}
		was := after
		d.Control.Read(func(m *core.Machine) { after = m.State().Reconciled() })
		if was == after {
			reply.Problem(w, http.StatusConflict, "another request has booked bills meanwhile", "book it again", nil)
			return false
		}
	}
	return true
}
