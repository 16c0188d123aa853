// Package bill holds the commands that read providers' bills.
package bill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/content/billfile"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{Use: "bill", Short: "Read and keep bills of providers", Args: command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Reads what a provider bills: " + reader.Kinds +
			". scrimp recognises the kind by the columns of the file. The " +
			"server keeps imported bills, and scrimp reconcile --book makes the ledger equal to them." +
			command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.showCmd(), a.importCmd(), a.fetchCmd(), a.listCmd(), a.removeCmd(), a.monthCmd(true),
		a.monthCmd(false))
	return []*cobra.Command{cmd, a.reconcileCmd(), a.wasteCmd(), a.recommendCmd()}
}

func (a *app) showCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "show FILE...", Short: "Say what a bill holds, by category and service",
		Args: command.Takes("FILE", "[FILE ...]"),
		Long: "Says what kind of bill a file is, and what it asks for by category and service, to the last digit: how much " +
			"of it has the tags that scrimp gives to machines, and tax, credits and refunds apart. Rows that cannot be read " +
			"are listed with their line and the reason (the first 20; with --json all). What they bill counts as \"not " +
			"read\", so that both together are the file's total.\n\n" +
			"Files are CSV, JSON lines or one JSON array, packed with gzip or not; the full build reads Parquet too. Nothing " +
			"is sent or booked. With --json you get an object for each file." +
			"\n\nExit status: 0 every row was read, 1 error, or a row could not be read.",
		Example: "  scrimp bill show cur-00001.csv.gz\n  scrimp bill show --json october.csv",
		RunE: func(cmd *cobra.Command, files []string) error {
			var failed error
			for i, file := range files {
				if i > 0 && !a.JSON {
					a.Printf("\n")
				}
				whole, err := a.show(cmd.Context(), file)
				switch {
				case err != nil && len(files) == 1 || cmd.Context().Err() != nil:
					return err
				case err != nil:
					a.Fault("", err)
					failed = command.Failed
				case !whole:
					failed = command.Failed
				}
			}
			return failed
		},
		ValidArgsFunction: command.Files("csv", "gz", "json", "jsonl", "parquet")}
	return cmd
}

// shown bounds the number of problems that the table shows.
const shown = 20

// show prints the contents of one file and reports whether every row was readable.
func (a *app) show(ctx context.Context, file string) (whole bool, err error) {
	in, err := os.Open(file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	defer func() { _ = in.Close() }()
	r, err := billfile.Open(file, in)
	if err != nil {
		return false, err
	}
	s := bill.Summary{File: file, Kind: r.Kind(), Lacks: r.Lacks()}
	var first []bill.Problem
	list := &problems{out: a.Out}
	for n := 0; ; n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return false, err
		}
		s.Add(row)
		switch p := row.Problem; {
		case p == nil:
		case a.JSON:
			list.add(*p)
		case len(first) < shown:
			first = append(first, *p)
		}
	}
	s.Finish()
	if a.JSON {
		return s.Problems == 0, list.end(&s)
	}
	a.Printf("%s", bills.Bill(&s, first, a.Place()))
	return s.Problems == 0, nil
}

// problems writes the JSON object of a file. It streams the problems, because a file may have millions of them.
type problems struct {
	out io.Writer
	n   int
	err error
}

func (l *problems) write(text []byte) {
	if l.err == nil {
		_, l.err = l.out.Write(text)
	}
}

func (l *problems) add(p bill.Problem) {
	start := ","
	if l.n == 0 {
		start = `{"problems":[`
	}
	l.n++
	l.write([]byte(start))
	l.write(encoded(p))
}

// end writes the rest of the object.
func (l *problems) end(s *bill.Summary) error {
	start := "],"
	if l.n == 0 {
		start = `{"problems":[],`
	}
	l.write([]byte(start))
	l.write(encoded(s)[1:])
	l.write([]byte("\n"))
	return l.err
}

// encoded returns the JSON that App.Print writes, without the newline.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts and numbers only, so it cannot fail
	return bytes.TrimSpace(b.Bytes())
}
