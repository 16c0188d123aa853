package bill

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/content/billfile"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

func (a *app) importCmd() *cobra.Command {
	var currency string
	cmd := &cobra.Command{Use: "import FILE...", Short: "Keep bills on the server",
		Args: command.Takes("FILE", "[FILE ...]"),
		Long: "Reads bills as scrimp bill show does and keeps their rows on the server, by provider, account and month. " +
			"Give all files of a month at once: what you import replaces the bill of the same provider, account and month. " +
			"Importing the same bill again changes nothing. scrimp reconcile compares the kept bills with the ledger. " +
			"Rows that cannot be read are kept with their amount, and never booked. A bill in another currency than the kept " +
			"one is refused without --currency. This needs the role admin of all teams, " +
			"and the month must not be closed." +
			"\n\nExit status: 0 kept, 1 error, or a row could not be read.",
		Example: "  scrimp bill import cur-00001.csv.gz cur-00002.csv.gz",
		RunE: a.With(func(ctx context.Context, c *command.Client, files []string) error {
			list, unread, err := a.send(ctx, c, files, money.Currency(currency))
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				if err := command.PrintEach(a, list); err != nil {
					return err
				}
			} else {
				a.Printf("%s", bills.ImportedBills(list, a.Place()))
			}
			return a.whole(nil, unread)
		}),
		ValidArgsFunction: command.Files("csv", "gz", "json", "jsonl", "parquet")}
	cmd.Flags().StringVar(&currency, "currency", "", "replace a kept bill in another currency by one in this, a `code` "+
		"such as USD (default: refuse it)")
	return cmd
}

// send sends the rows of the files, and counts the unreadable ones.
func (a *app) send(ctx context.Context, c *command.Client, files []string, currency money.Currency) (
	list []api.ImportedBill, unread int, err error) {
	var set billfile.Set
	for _, file := range billfile.Named(files) { // finds a file that is no bill before anything is sent
		if _, err := set.Add(ctx, file, "scrimp bill show"); err != nil {
			return nil, 0, err
		}
	}
	names := make([]string, len(set.Files))
	for i, file := range set.Files {
		names[i] = filepath.Base(file.Path)
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { // ends when the request has read or closed the pipe
		err := billfile.Pack(ctx, w, set.Files)
		_ = w.CloseWithError(err)
		sent <- err
	}()
	list, err = c.ImportBills(ctx, names, currency, r)
	_ = r.CloseWithError(err)
	if wrong := <-sent; wrong != nil && err == nil {
		err = wrong
	}
	if p := set.First; err == nil && p != nil {
		a.Fault("", fmt.Errorf("%s of these files are repetitions, the first in line %d of %s: %s. They are booked once, "+
			"and count twice in the total: import files that share no row", draw.Count(set.Overlap, "row"), p.Line, p.File,
			p.Reason))
	}
	return list, set.Unread, err
}

func (a *app) listCmd() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the kept bills, the closed months and the fetched exports",
		Args: command.Takes(),
		Long: "Lists the bills that the server keeps: provider, account, month, lines, total, when they were imported and " +
			"by whom, and whether the month is closed; then the exports that the server fetches by itself: when, what it " +
			"imported, and what it could not. This needs the role viewer of all teams." + command.PlainExit,
		Example: "  scrimp bill list",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := c.Bills(ctx)
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, bills.Bills(v, a.Place()))
		})}
}

func (a *app) removeCmd() *cobra.Command {
	yes := false
	cmd := &cobra.Command{Use: "remove PROVIDER ACCOUNT MONTH", Short: "Remove a kept bill",
		Args: command.Takes("PROVIDER", "ACCOUNT", "MONTH"),
		Long: "Removes a bill that the server keeps, such as one imported by mistake, with its rows. Name it as " +
			"scrimp bill list does. Without --yes it only says what would be removed. The ledger keeps what was booked of " +
			"it: the next scrimp reconcile --book of the month reverses that, exactly. If the server fetches the bill from " +
			"a bucket, it comes back once the export changes. This needs the role admin of all teams, and the month must " +
			"not be closed." + command.PlainExit,
		Example: "  scrimp bill remove aws 123456789012 2026-10\n  scrimp bill remove aws 123456789012 2026-10 --yes",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.RemoveBill(ctx, api.RemoveBill{Provider: args[0], Account: args[1], Month: args[2], DryRun: !yes})
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, bills.RemovedBill(v, a.Place()))
		})}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it (default: only say what would be removed)")
	return cmd
}

func (a *app) fetchCmd() *cobra.Command {
	return &cobra.Command{Use: "fetch ENGINE", Short: "Fetch an engine's bill from its bucket now",
		Args: command.Takes("ENGINE"),
		Long: "Fetches the new and changed files of the bill that a provider exports to a bucket, and imports them as " +
			"scrimp bill import does. The engine names the bucket in engines.yaml, under bills. The server does the same on a " +
			"schedule. If a file of a month is unreadable, scrimp keeps the bill that it has for that month. This needs the " +
			"role admin of all teams.\n\nExit status: 0 fetched, 1 error, or a month was not imported.",
		Example: "  scrimp bill fetch aws",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.FetchBills(ctx, args[0])
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				err = a.Print(v)
			} else {
				a.Printf("%s", show.BillExport(v, a.Place()))
			}
			if err == nil && (v.Error != "" ||
				slices.ContainsFunc(v.Periods, func(p api.BillPeriod) bool { return p.Problem != "" })) {
				err = command.Failed
			}
			return err
		})}
}

// monthCmd returns the command that closes a month, or reopens it.
func (a *app) monthCmd(closed bool) *cobra.Command {
	use, short, done := "reopen MONTH", "Open a closed month again", "open again: bills of it can be imported and booked."
	long := "Opens a closed month, so that bills can be imported and booked for it again."
	if closed {
		use, short, done = "close MONTH", "Close a month for bills", "closed: no bill of it can be imported or booked."
		long = "Closes a month that is over: the server refuses to import bills of it, to book differences for it, and to " +
			"change fees that count in it. The costs that scrimp measures itself are booked as before."
	}
	return &cobra.Command{Use: use, Short: short, Args: command.Takes("MONTH"),
		Long:    long + " This needs the role admin of all teams." + command.PlainExit,
		Example: "  scrimp bill " + use[:len(use)-len("MONTH")] + "2026-10",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if err := c.SetBillMonth(ctx, args[0], closed); err != nil {
				return c.Said(ctx, err)
			}
			return a.Showf(api.SetBillMonth{Month: args[0], Closed: closed}, "%s is %s\n", args[0], done)
		})}
}
