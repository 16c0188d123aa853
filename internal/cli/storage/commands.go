// Package storage holds the command that shows what stored files cost and deletes what nobody needs.
package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/content/blob"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/storage"
	"scrimp/internal/work/storage/lifecycle"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.storageCmd()}
}

// flags holds the flags of scrimp storage.
type flags struct {
	rules, price, plan, apply, lifecycle, to, least string
	keep                                            []string
}

func (a *app) storageCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "storage [PATH|BUCKET ...]", Short: "What stored files cost a month, and what to delete or move",
		GroupID: command.GroupMoney,
		Long: `Shows what lies in folders and buckets by kind: files, bytes, the last use, the cost a month, and copies with
the same contents. It applies rules (keep, tier, delete) and says what each saves. Without a PATH it shows what the
server keeps, by kind and by team; scrimp gc removes that.

scrimp storage changes nothing unless --apply names a plan that --plan wrote before. --apply first checks every file
and deletes nothing if one has changed. It never deletes what a live job or group names in its job file, the newest
checkpoint of a run, a checkpoint named best, last, latest, final or release, a file with several hard links, or files
in a data folder or a store of scrimp.

BUCKET is s3://NAME, gs://NAME or azblob://NAME?account=ACCOUNT, each with ?prefix=PATH for a part of it. Costs come
from --price, or for the standard classes of AWS, Google and Azure from the catalogue; a cost without a price is
unknown, not zero. See docs/storage.md.` + command.PlainExit,
		Example: "  scrimp storage\n  scrimp storage /data/runs --rules rules.yaml --plan plan.json\n" +
			"  scrimp storage --apply plan.json\n" +
			"  scrimp storage s3://models --rules rules.yaml --price prices.yaml --lifecycle s3 -o lifecycle.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.apply != "":
				return a.apply(cmd, f.apply, f.keep, args)
			case len(args) == 0:
				return a.server(cmd, f)
			}
			return a.scan(cmd.Context(), f, args)
		},
	}
	s := cmd.Flags()
	s.StringVar(&f.rules, "rules", "", "YAML `file` of rules (default: delete checkpoints and profiles unused for 30 "+
		"days, logs for 90, TensorBoard files for 180)")
	s.StringVar(&f.price, "price", "", "YAML `file` of prices by storage class (default: the catalogue)")
	s.StringVar(&f.plan, "plan", "", "write the files to delete as a plan to this `file` (default: write none)")
	s.StringVar(&f.apply, "apply", "", "delete the files of the plan in this `file` (default: delete nothing)")
	s.StringArrayVar(&f.keep, "keep", nil, "`path`, from here or from a scanned folder, or address that stays with all "+
		"below it; may be repeated (default: none)")
	s.StringVar(&f.lifecycle, "lifecycle", "", "write the lifecycle configuration of the bucket for the tier rules that "+
		"save money: `format` "+strings.Join(lifecycle.Formats, ", ")+" (default: write none)")
	s.StringVarP(&f.to, "output", "o", "", "`file` for --lifecycle; - is standard output (default: -)")
	s.StringVar(&f.least, "duplicates", "1MiB", "compare the contents of files of at least this `size`; 0 compares none")
	_ = cmd.MarkFlagFilename("rules", "yaml", "yml")
	_ = cmd.MarkFlagFilename("price", "yaml", "yml")
	_ = cmd.MarkFlagFilename("apply", "json")
	return cmd
}

// usageOf asks the server what it keeps.
func usageOf(ctx context.Context, c *command.Client) (v api.Storage, err error) {
	err = c.Do(ctx, http.MethodGet, "/v1/storage", nil, &v)
	return v, err
}

// server shows what the server keeps.
func (a *app) server(cmd *cobra.Command, f flags) error {
	for _, name := range []string{"rules", "plan", "lifecycle", "keep", "output", "duplicates"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s needs a PATH or a BUCKET: scrimp gc removes what the server keeps", name)
		}
	}
	prices, err := f.prices()
	if err != nil {
		return err
	}
	c, err := a.Ensure(cmd.Context(), "")
	if err != nil {
		return err
	}
	v, err := usageOf(cmd.Context(), c)
	if err != nil {
		return err
	}
	out := holdings.ServerOf(v, prices)
	return a.Show(out, out.Text(a.Place()))
}

// read reads a file of at most so many bytes, and one more if it is longer.
func read(flag, file string, most int64) ([]byte, error) {
	in, err := os.Open(file)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(in, most+1))
		_ = in.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", flag, err)
	}
	return text, nil
}

const maxSheet = 1 << 20

// prices returns the prices of --price and the built-in ones.
func (f flags) prices() (storage.Prices, error) { return Prices(f.price) }

// Prices returns the prices of a file, "" for none, and the built-in ones.
func Prices(file string) (storage.Prices, error) {
	var list []storage.Price
	for _, store := range storage.Stores {
		r, ok := (catalog.Catalog{}).TransferRate(store, catalog.StorageMonth)
		if !ok {
			continue
		}
		month, err := storage.ParseMonth(r.Price.String())
		if err != nil {
			return storage.Prices{}, err
		}
		list = append(list, storage.Price{Store: store, Class: storage.DefaultClass(store), Month: month, Source: r.Source,
			Date: r.At.Format("2006-01-02")})
	}
	if file == "" {
		return storage.Builtin(list), nil
	}
	text, err := read("--price", file, maxSheet)
	if err != nil {
		return storage.Prices{}, err
	}
	return storage.ParsePrices(file, text, list)
}

func (f flags) ruleList() ([]storage.Rule, error) {
	if f.rules == "" {
		return storage.DefaultRules(), nil
	}
	text, err := read("--rules", f.rules, maxSheet)
	if err != nil {
		return nil, err
	}
	return storage.ParseRules(f.rules, text)
}

// Places parses folders and addresses of buckets.
func Places(args []string) (list []storage.Place, err error) {
	if len(args) > storage.MaxPlaces {
		return nil, fmt.Errorf("%d places are too many: give at most %d", len(args), storage.MaxPlaces)
	}
	for _, arg := range args {
		if arg == "" {
			return nil, errors.New("a PATH is empty: write . for the current folder")
		}
		if strings.Contains(arg, "://") {
			p, err := bucketPlace(arg)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
			continue
		}
		abs, err := filepath.Abs(arg)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", arg, err)
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder: give the folder that it is in", arg)
		}
		list = append(list, storage.Place{Name: abs, Store: storage.Local})
	}
	return list, checkOverlap(list)
}

// read checks the flags for the places, and reads the files that they name.
func (f flags) read(places []storage.Place) (least size.Bytes, rules []storage.Rule, p storage.Prices, err error) {
	if least, err = f.check(places); err == nil {
		rules, err = f.ruleList()
	}
	if err == nil {
		p, err = f.prices()
	}
	return least, rules, p, err
}

// check returns an error for flags that do not go together.
func (f flags) check(places []storage.Place) (least size.Bytes, err error) {
	if f.to != "" && f.lifecycle == "" {
		return 0, errors.New("-o names the file for --lifecycle: give --lifecycle too")
	}
	switch {
	case len(f.keep) > storage.MaxKeep:
		return 0, fmt.Errorf("--keep names %d paths: give at most %d", len(f.keep), storage.MaxKeep)
	case f.lifecycle == "":
	case !slices.Contains(lifecycle.Formats, f.lifecycle):
		return 0, fmt.Errorf("--lifecycle %q is none of %s", f.lifecycle, strings.Join(lifecycle.Formats, ", "))
	case len(places) != 1 || places[0].Store == storage.Local:
		return 0, errors.New("--lifecycle needs one bucket: the configuration belongs to a bucket")
	case places[0].Store != lifecycle.StoreOf(f.lifecycle):
		return 0, fmt.Errorf("--lifecycle %s: %s is not a bucket of that provider", f.lifecycle, places[0].Name)
	}
	if f.least == "0" {
		return 0, nil
	}
	if least, err = size.Parse(f.least); err != nil || least < 0 {
		return 0, fmt.Errorf("--duplicates %q is not a size: write one such as 1MiB, or 0", f.least)
	}
	return least, nil
}

func (a *app) apply(cmd *cobra.Command, file string, keep, args []string) error {
	if len(args) > 0 {
		return errors.New("--apply takes no PATH: the plan names the places")
	}
	for _, name := range []string{"rules", "price", "plan", "lifecycle", "output", "duplicates"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s and --apply do not go together: the plan says what is deleted", name)
		}
	}
	text, err := read("--apply", file, storage.MaxPlan)
	if err != nil {
		return err
	}
	p, err := storage.ReadPlan(file, text)
	if err != nil {
		return err
	}
	g := newGuard(a.Data)
	for _, k := range p.Keep {
		g.name(k)
	}
	if _, err := keepAll(g, keep, p.Places); err != nil {
		return err
	}
	if err := g.ask(cmd.Context(), a.App); err != nil {
		return err
	}
	if err := g.mayDelete(); err != nil {
		return err
	}
	files, bytes, err := apply(cmd.Context(), g, p, a.progress("deleted"))
	a.done()
	done := holdings.Applied{Digest: p.Digest, Files: files, Bytes: bytes}
	if err != nil && files == 0 {
		return err
	}
	if a.JSON {
		err = errors.Join(err, a.Print(done))
	} else {
		a.Printf("%s", done.Text(a.Place()))
	}
	return err
}

// scanPlaces reads all places.
func (a *app) scanPlaces(ctx context.Context, s *scanner, places []storage.Place) error {
	defer a.done()
	for i, p := range places {
		if p.Store == storage.Local {
			if err := s.local(ctx, i, p.Name); err != nil {
				return fmt.Errorf("read %s: %w", p.Name, err)
			}
			continue
		}
		b, err := blob.OpenExisting(ctx, p.Name)
		if err != nil {
			return err
		}
		err = s.bucket(ctx, i, p, b)
		if err = errors.Join(err, b.Close()); err != nil {
			return fmt.Errorf("list %s: %w", p.Name, err)
		}
	}
	return nil
}
