package bill

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/content/billfile"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/record"
	"scrimp/internal/work/reconcile"
)

func (a *app) reconcileCmd() *cobra.Command {
	var month string
	var book bool
	cmd := &cobra.Command{Use: "reconcile [FILE...]", Short: "Compare bills with the ledger, and book the difference",
		GroupID: command.GroupMoney, Args: command.Takes("[FILE ...]"),
		Long: "Compares the bills that scrimp bill import keeps, or FILEs, with the ledger of a month. scrimp finds the " +
			"machine of each line by the provider's id, then by scrimp's tags, then by time and type. It splits each gap " +
			"into price, time, rounding, tax, credit, commitment, other (disks, addresses, transfer) and duplicate lines; " +
			"the parts add up to the gap exactly. It lists what has no partner on either side. It never adds currencies " +
			"up. A bill covers the machines of all teams, so this needs the role viewer of all teams.\n\n" +
			"--book books the gaps of the kept bills as billed costs of the machines' jobs and teams, so that the ledger of " +
			"each machine equals its bill. Booking again changes nothing; after a revised bill it books the change. It " +
			"needs the role admin of all teams. Without --book nothing is booked." +
			"\n\nExit status: 0 compared, 1 error, or a row could not be read.",
		Example: "  scrimp reconcile --month 2026-10\n" +
			"  scrimp reconcile --month 2026-10 --book\n" +
			"  scrimp reconcile --month 2026-10 --json october-*.csv",
		RunE: a.With(func(ctx context.Context, c *command.Client, files []string) error {
			if len(files) == 0 {
				return a.reconcileKept(ctx, c, month, book)
			}
			if book {
				return errors.New("--book books the bills that the server keeps: import the files with scrimp bill import, and " +
					"leave FILE out")
			}
			v, unread, err := a.reconcile(ctx, c, month, files)
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				err = a.Print(v)
			} else {
				_, err = io.WriteString(a.Out, bills.Reconcile(v, a.Place()))
			}
			return a.whole(err, unread)
		}),
		ValidArgsFunction: command.Files("csv", "gz", "json", "jsonl", "parquet")}
	cmd.Flags().StringVar(&month, "month", "", "`month` in UTC, such as 2026-10 (default: last month)")
	cmd.Flags().BoolVar(&book, "book", false, "book the gaps of the kept bills (default: only say what would be booked)")
	return cmd
}

// whole returns err, or the failure that some rows could not be read.
func (a *app) whole(err error, unread int) error {
	if err == nil && unread > 0 {
		a.Fault("", fmt.Errorf("%s could not be read: scrimp bill show lists them", draw.Count(unread, "row")))
		return command.Failed
	}
	return err
}

// monthOf returns the month of the flag, by default the last one.
func (a *app) monthOf(month string) string {
	if month != "" {
		return month
	}
	return charge.Month(charge.Month(a.Now().UTC()).Add(-time.Hour)).Format("2006-01")
}

// reconcileKept compares the bills that the server keeps.
func (a *app) reconcileKept(ctx context.Context, c *command.Client, month string, book bool) (err error) {
	var v trueup.Comparison
	if month = a.monthOf(month); book {
		err = c.Do(ctx, http.MethodPost, "/v1/bills/reconcile", api.BookBills{Month: month}, &v)
	} else {
		err = c.Do(ctx, http.MethodGet, "/v1/bills/reconcile?"+url.Values{"month": {month}}.Encode(), nil, &v)
	}
	if err != nil {
		return c.Said(ctx, err)
	}
	if a.JSON {
		err = a.Print(v)
	} else {
		_, err = io.WriteString(a.Out, bills.ReconcileKept(v, a.Place()))
	}
	return a.whole(err, v.AllUnread)
}

// reconcile compares the files with the month's costs on the server.
func (a *app) reconcile(ctx context.Context, c *command.Client, month string, files []string) (v reconcile.Answer,
	unread int, err error) {
	month = a.monthOf(month)
	since, err := time.Parse("2006-01", month)
	if err != nil {
		return v, 0, fmt.Errorf("--month %.40q is not a month: write one such as 2026-10", month)
	}
	if err := seesAll(ctx, c); err != nil {
		return v, 0, err
	}
	b := reconcile.New(since, charge.NextMonth(since))
	q := url.Values{"since": {month}, "until": {charge.NextMonth(since).Format("2006-01")}}
	r, err := c.Request(ctx, http.MethodGet, "/v1/export/costs?"+q.Encode())
	switch p, is := errors.AsType[*api.Problem](err); {
	case is && p.Status == http.StatusNotFound: // the server spent nothing, but a bill may differ
	case err != nil:
		return v, 0, err
	default:
		defer func() { _ = r.Body.Close() }()
		if err := owned(r.Body, b.Own); err != nil {
			return v, 0, fmt.Errorf("read the costs of %s: %w", month, err)
		}
	}
	seen := billfile.Seen()
	for _, file := range files {
		n, err := readInto(ctx, file, seen, b, func(*bill.Line) {})
		if unread += n; err != nil {
			return v, 0, err
		}
	}
	return b.Finish(), unread, nil
}

// seesAll returns an error unless the caller sees the machines of all teams. A bill covers all of them: without the
// others, the lines of another team's machines would be those of no machine, or of a machine of the same type.
func seesAll(ctx context.Context, c *command.Client) error {
	var me api.Me
	if err := c.Do(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return err
	}
	if slices.ContainsFunc(me.Grants, func(g api.Grant) bool { return g.Team == api.Everywhere && g.Role != api.Nobody }) {
		return nil
	}
	return fmt.Errorf("a bill covers the machines of all teams, and %s does not see them all: ask an admin for the role "+
		"viewer of all teams", me.User)
}

// readInto reads a file of a bill, calls each with its lines, and counts its unreadable rows. seen has met the rows of
// the bill's earlier files (nil: there are none).
func readInto(ctx context.Context, file string, seen *record.Repeated, b *reconcile.Books,
	each func(*bill.Line)) (unread int, err error) {
	b.File()
	_, _, err = billfile.Rows(ctx, billfile.File{Name: file, Path: file}, seen, func(row bill.Row) error {
		if row.Problem != nil {
			unread++
		}
		for i := range row.Lines {
			each(&row.Lines[i])
		}
		b.Row(row)
		return nil
	})
	return unread, err
}

// owned reads the server's table of costs and calls f with each machine's costs.
func owned(in io.Reader, f func(reconcile.Machine)) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	at := map[string]int{}
	for n := 0; ; n++ {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			for i, name := range row {
				at[name] = i
			}
			continue
		}
		text := func(name string) string { return unquoted(strings.Clone(row[at[name]])) }
		m := reconcile.Machine{Instance: text("instance"), Job: text("job"), Attempt: text("attempt"),
			Type: text("machine"), Region: text("region"), Currency: money.Currency(text("currency"))}
		if m.Instance == "" {
			continue // a cost without a machine: a disk, a fee
		}
		cost, err := decimal.Parse(text("cost"))
		if err != nil {
			return err
		}
		if m.OtherCost = cost; ledger.Category(text("category")) == ledger.Compute {
			m.Cost, m.OtherCost = cost, decimal.Decimal{}
			if text("hours") != "" {
				m.Plain = cost
			}
		}
		if hours := text("hours"); hours != "" {
			if m.Hours, err = decimal.Parse(hours); err != nil {
				return err
			}
		}
		if m.Begin, err = time.Parse(time.RFC3339, text("begin")); err != nil {
			return err
		}
		if m.End, err = time.Parse(time.RFC3339, text("end")); err != nil {
			return err
		}
		f(m)
	}
}

// unquoted is a cell without the quote that keeps a spreadsheet from reading it as something else.
func unquoted(cell string) string {
	if rest, quoted := strings.CutPrefix(cell, "'"); quoted && charge.Misread(rest) {
		return rest
	}
	return cell
}
