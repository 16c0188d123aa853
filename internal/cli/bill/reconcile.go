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
	"slices"
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
			"is listed on both sides. Currencies are never added up. A bill covers the machines of all teams, so this " +
			"needs the role viewer of all teams. Nothing is sent or booked." +
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
	for _, file := range files {
		n, err := readInto(ctx, file, b)
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

// readInto reads a bill and counts its unreadable rows.
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
