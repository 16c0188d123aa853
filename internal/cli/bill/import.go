package bill

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
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
				for _, b := range list {
					if err := a.Print(b); err != nil {
						return err
					}
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
	files, err = distinct(files)
	if err != nil {
		return nil, 0, err
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = filepath.Base(file)
	}
	// The first pass finds a file that is no bill before anything is sent.
	for _, file := range files {
		lines, rows := 0, 0
		err := rowsOf(ctx, file, func(row bill.Row) error {
			if lines, rows = lines+len(row.Lines), rows+1; row.Problem != nil {
				unread++
			}
			return nil
		})
		switch {
		case err != nil:
			return nil, 0, err
		case rows == 0:
			return nil, 0, fmt.Errorf("%s has no row below its header: export the bill again, once it has charges", file)
		case lines == 0:
			return nil, 0, fmt.Errorf("%s: no row could be read: scrimp bill show %s says why", file, file)
		}
	}
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { // ends when the request has read or closed the pipe
		err := pack(ctx, w, files)
		_ = w.CloseWithError(err)
		sent <- err
	}()
	list, err = c.ImportBills(ctx, names, currency, r)
	_ = r.CloseWithError(err)
	if wrong := <-sent; wrong != nil && err == nil {
		err = wrong
	}
	return list, unread, err
}

// distinct drops files with the same content as an earlier one: a bill counts once.
func distinct(files []string) (list []string, err error) {
	var sums [][]byte
	for _, file := range files {
		h := sha256.New()
		in, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		_, err = io.Copy(h, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		sum := h.Sum(nil)
		if !slices.ContainsFunc(sums, func(s []byte) bool { return bytes.Equal(s, sum) }) {
			list, sums = append(list, file), append(sums, sum)
		}
	}
	return list, nil
}

// pack writes the rows of the files as JSON lines in gzip.
func pack(ctx context.Context, to io.Writer, files []string) error {
	packed := gzip.NewWriter(to)
	out := bufio.NewWriter(packed)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, file := range files {
		if err := rowsOf(ctx, file, afterLine(func(row bill.Row) error { return e.Encode(row) })); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), packed.Close())
}

// afterLine delays unread rows before the first line of a file until that line: an unread row belongs to the bill of
// the line before it, which would be one of another file. So a bill has the same rows whatever files precede it.
func afterLine(f func(bill.Row) error) func(bill.Row) error {
	var early []bill.Row
	begun := false
	return func(row bill.Row) error {
		if !begun && len(row.Lines) == 0 {
			early = append(early, row)
			return nil
		}
		err := f(row)
		for _, r := range early {
			if err == nil {
				err = f(r)
			}
		}
		begun, early = true, nil
		return err
	}
}

// rowsOf calls f with each row of a file.
func rowsOf(ctx context.Context, file string, f func(bill.Row) error) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	defer func() { _ = in.Close() }()
	r, err := open(file, in)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

func (a *app) listCmd() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the kept bills and the closed months", Args: command.Takes(),
		Long: "Lists the bills that the server keeps: provider, account, month, lines, total, when they were imported and " +
			"by whom, and whether the month is closed. This needs the role viewer of all teams." + command.PlainExit,
		Example: "  scrimp bill list",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := c.Bills(ctx)
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				return a.Print(v)
			}
			a.Printf("%s", bills.Bills(v, a.Place()))
			return nil
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
			if a.JSON {
				return a.Print(api.SetBillMonth{Month: args[0], Closed: closed})
			}
			a.Printf("%s is %s\n", args[0], done)
			return nil
		})}
}
