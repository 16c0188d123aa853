package bill

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/reconcile"
)

func (a *app) reconcileCmd() *cobra.Command {
	var month string
	cmd := &cobra.Command{Use: "reconcile FILE...", Short: "Compare bills with what scrimp accounted for",
		GroupID: command.GroupMoney, Args: command.Takes("FILE", "[FILE ...]"),
		Long: "Reads bills as scrimp bill show does, finds the machine of each line (by the provider's id, then by " +
			"scrimp's tags, then by time and type), and compares what each machine was billed with what scrimp " +
			"accounted for in the month. Each gap is split into price, time, rounding, tax, credit, commitment, other " +
			"(disks, addresses, transfer) and duplicate lines; the parts add up to it exactly. What has no partner " +
			"is listed on both sides. Currencies are never added up. Machines of teams that you may not see count as not " +
			"scrimp's. Nothing is sent or booked." +
			"\n\nExit status: 0 compared, 1 error, or a row could not be read.",
		Example: "  scrimp reconcile --month 2026-10 cur-00001.csv.gz\n" +
			"  scrimp reconcile --month 2026-10 --json october-*.csv",
		RunE: a.With(func(ctx context.Context, c *command.Client, files []string) error {
			v, unread, err := a.reconcile(ctx, c, month, files)
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				err = a.Print(v)
			} else {
				_, err = io.WriteString(a.Out, show.Reconcile(v, a.Place()))
			}
			if err == nil && unread > 0 {
				a.Fault("", fmt.Errorf("%d rows could not be read: scrimp bill show lists them", unread))
				return command.Failed
			}
			return err
		}),
		ValidArgsFunction: command.Files("csv", "gz", "json", "jsonl", "parquet")}
	cmd.Flags().StringVar(&month, "month", "", "`month` in UTC, such as 2026-10 (default: last month)")
	return cmd
}

// reconcile compares the files with the month's costs on the server.
func (a *app) reconcile(ctx context.Context, c *command.Client, month string, files []string) (v reconcile.Answer,
	unread int, err error) {
	if month == "" {
		month = charge.Month(charge.Month(a.Now().UTC()).Add(-time.Hour)).Format("2006-01")
	}
	since, err := time.Parse("2006-01", month)
	if err != nil {
		return v, 0, fmt.Errorf("--month %.40q is no month: write one such as 2026-10", month)
	}
	b := reconcile.New(since, charge.NextMonth(since))
	q := url.Values{"since": {month}, "until": {charge.NextMonth(since).Format("2006-01")}}
	r, err := c.Request(ctx, http.MethodGet, "/v1/export/costs?"+q.Encode())
	switch p, is := errors.AsType[*api.Problem](err); {
	case is && p.Status == http.StatusNotFound: // nothing was spent, and a bill may say something else
	case err != nil:
		return v, 0, err
	default:
		defer func() { _ = r.Body.Close() }()
		if err := owned(r.Body, b.Own); err != nil {
			return v, 0, fmt.Errorf("read the costs of %s: %w", month, err)
		}
	}
	for _, file := range files {
		n, err := readInto(ctx, file, b)
		if unread += n; err != nil {
			return v, 0, err
		}
	}
	return b.Finish(), unread, nil
}

// readInto reads a bill, and counts the rows that could not be read.
func readInto(ctx context.Context, file string, b *reconcile.Books) (unread int, err error) {
	in, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	defer func() { _ = in.Close() }()
	r, err := open(file, in)
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return unread, ctx.Err()
		}
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return unread, nil
		case err != nil:
			return unread, err
		case row.Problem != nil:
			unread++
		}
		b.Row(row)
	}
}

// owned reads the table of costs that the server sends, and calls f with each cost of a machine.
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
			continue // no machine's: a disk, a fee
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
