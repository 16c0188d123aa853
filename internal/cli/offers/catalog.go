package offers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed"
	"scrimp/internal/market/feed/intake"
)

// Bounds of one page, in bytes; AWS price lists are streamed.
const (
	mostPage   = 64 << 20
	mostStream = 2 << 30
)

func (a *app) catalogCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "catalog", Short: "The catalogue of machines and prices", GroupID: command.GroupMoney,
		Long: "The catalogue of offers: machines and dated prices that the program carries, newer prices that were " +
			"fetched or imported, and your own."}
	cmd.AddCommand(a.catalogShowCmd(), a.catalogUpdateCmd(), a.catalogImportCmd())
	return cmd
}

func (a *app) catalogShowCmd() *cobra.Command {
	var gpus bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show what the catalogue holds, how old it is, and skipped rows",
		Long: "Lists the layers of the catalogue (what the program carries, what was fetched or imported, your own " +
			feed.PricesName + "), what it has of each provider, and every row that was skipped with the reason.\n\nExit " +
			"status: 0 done, 1 error.",
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			if gpus {
				if !a.JSON {
					a.Printf("%s", listing.Kinds(accelerator.Accelerators(), a.Place()))
					return nil
				}
				for _, k := range accelerator.Accelerators() {
					if err := a.Print(listing.KindOf(k)); err != nil {
						return err
					}
				}
				return nil
			}
			c, copies, err := feed.Load(a.Data)
			if err != nil {
				return err
			}
			v := listing.Contents{Folder: a.Data, Skipped: append([]catalog.Skip{}, c.Skipped...), Layers: []listing.Layer{}}
			for _, f := range copies {
				l := listing.Layer{Name: f.Name, Rows: f.Rows}
				if !f.At.IsZero() {
					l.At = &f.At
				}
				v.Layers = append(v.Layers, l)
			}
			v.Count(c.Listings, a.Now().UTC(), listing.Limits{})
			return a.Show(v, v.Text(a.Place()))
		},
	}
	cmd.Flags().BoolVar(&gpus, "gpus", false, "list what is known of accelerators instead (default: the catalogue)")
	return cmd
}

func (a *app) catalogUpdateCmd() *cobra.Command {
	var regions []string
	cmd := &cobra.Command{
		Use: "update [SOURCE ...]", Short: "Fetch newer prices from the providers' public pages",
		Long: "Fetches prices and keeps them in the data folder: " + strings.Join(feed.Sources, ", ") +
			" or skypilot/NAME, a table of SkyPilot's public catalogue such as skypilot/lambda. " +
			"Without a source it fetches aws, aws-risk, azure and, where GOOGLE_API_KEY holds a key, gcp. A source that " +
			"fails leaves its earlier copy in place.\n\nExit status: 0 all were fetched, 1 one failed.",
		Example: "  scrimp catalog update aws --region eu-west-1\n  scrimp catalog update skypilot/lambda skypilot/runpod",
		RunE: func(cmd *cobra.Command, args []string) error {
			key := os.Getenv("GOOGLE_API_KEY")
			if len(args) == 0 {
				args = []string{"aws", "aws-risk", "azure"}
				if key != "" {
					args = append(args, "gcp")
				}
			}
			return a.fetch(cmd.Context(), args, func(source string) feed.Updater {
				limit := int64(mostPage)
				if source == "aws" {
					limit = mostStream
				}
				return feed.Updater{Client: feed.Default(a.Version, limit), Endpoints: feed.Public(), Regions: regions, GCPKey: key,
					Now: a.Now().UTC()}
			})
		},
	}
	cmd.Flags().StringSliceVar(&regions, "region", nil,
		"`region` to fetch, each provider takes those of its own form (default us-east-1 of AWS, eastus of Azure, all of "+
			"Google Cloud; may be repeated)")
	return cmd
}

// fetch updates sources one after the other. A failed source does not stop the others.
func (a *app) fetch(ctx context.Context, sources []string, with func(source string) feed.Updater) error {
	failed := 0
	for _, source := range sources {
		known, _, err := feed.Published(a.Data) // with the results of the previous source
		if err != nil {
			a.Notef("note: %v\n", err)
			known = catalog.Builtin()
		}
		a.Notef("fetching %s …\n", source)
		u := with(source)
		u.Known = known
		f := listing.Fetched{Source: source, Skipped: []catalog.Skip{}}
		c, err := u.Update(ctx, source)
		if err == nil {
			f.Offers, f.Skipped, f.Summary = len(c.Listings), append(f.Skipped, c.Skipped...), intake.Summary(c.Skipped)
			f.Kept, err = feed.Keep(a.Data, source, c)
		}
		if err != nil {
			f.Error = err.Error()
			failed++
		}
		if err := a.tell(f); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d sources failed, their earlier copies stay", failed, len(sources))
	}
	return nil
}

func (a *app) tell(f listing.Fetched) error {
	return a.Show(f, f.Text(a.Place()))
}

func (a *app) catalogImportCmd() *cobra.Command {
	var form, provider, at string
	names := make([]string, 0, len(feed.Forms()))
	for _, f := range feed.Forms() {
		names = append(names, string(f))
	}
	cmd := &cobra.Command{
		Use: "import FILE ...", Short: "Read prices from files: provider pages, SkyPilot tables, your own",
		Long: "Reads pages that you have fetched and keeps their offers in the data folder. All files of one " +
			"command have one form and one source; scrimp detects the form from the first, unless --form names it.\n\n" +
			"Exit status: 0 imported, 1 error: then nothing is kept.",
		Example: "  aws ec2 describe-spot-price-history --product-descriptions Linux/UNIX --region us-east-1 > spot.json\n" +
			"  scrimp catalog import spot.json\n  scrimp catalog import --provider lambda vms.csv",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.importPrices(args, feed.Form(form), provider, at)
		},
	}
	cmd.Flags().StringVar(&form, "form", "", "`form` of the files: "+strings.Join(names, ", ")+
		" (default: seen from the first)")
	cmd.Flags().StringVar(&provider, "provider", "",
		"`name` of the provider whose table it is, for SkyPilot tables, which do not say; of a cluster its name, which "+
			"stands as its region (default: as the page says)")
	cmd.Flags().StringVar(&at, "at", "", "`day` or time of prices that carry none (default when the file was written)")
	return cmd
}

// readPages reads files of the same form, either the given one or the first file's. It dates them like the oldest.
func readPages(files []string, form feed.Form, p *intake.Page) ([][]byte, feed.Form, error) {
	var pages [][]byte
	for i, name := range files {
		page, written, err := readPage(name)
		if err != nil {
			return nil, "", err
		}
		seen, err := feed.Sniff(page)
		if form == "" && err != nil {
			return nil, "", fmt.Errorf("import %s: %w: say it with --form", name, err)
		}
		if form == "" {
			form = seen
		} else if err == nil && seen != form {
			return nil, "", fmt.Errorf("import %s: it looks like %s, not %s: import each form by itself", name, seen, form)
		}
		if i == 0 || written.Before(p.At) {
			p.At = written
		}
		pages = append(pages, page)
	}
	return pages, form, nil
}

// nothingImported explains why no row of the files is an offer.
func nothingImported(files []string, form feed.Form, f listing.Fetched) error {
	if f.Summary == "" && form == feed.AWSAdvisor {
		return fmt.Errorf("import %s: it says how often spot machines are interrupted, and none of the catalogue's is among "+
			"them: import their spot prices first", strings.Join(files, ", "))
	}
	first := ""
	if len(f.Skipped) > 0 && f.Skipped[0].Detail != "" {
		first = fmt.Sprintf(", such as %s: %s", f.Skipped[0].Name, f.Skipped[0].Detail)
	}
	return fmt.Errorf("import %s: no row of it is an offer; skipped %s%s", strings.Join(files, ", "),
		cmp.Or(f.Summary, "none: there are no rows"), first)
}

func (a *app) importPrices(files []string, form feed.Form, provider, at string) error {
	if form != "" && !slices.Contains(feed.Forms(), form) {
		return fmt.Errorf("--form %q is none of %v", form, feed.Forms())
	}
	known, _, err := feed.Published(a.Data)
	if err != nil {
		return err
	}
	p := intake.Page{Source: filepath.Base(files[0]), Provider: provider, Shapes: known, Spot: &known}
	pages, form, err := readPages(files, form, &p)
	if err != nil {
		return err
	}
	if at != "" {
		if p.At, err = catalog.ParseTime(at); err != nil {
			return fmt.Errorf("--at: %w", err)
		}
	}
	if form == feed.SkyPilot && provider == "" {
		return fmt.Errorf("import %s: a SkyPilot table does not say whose it is: add --provider NAME", files[0])
	}
	c, err := feed.Import(form, p, pages...)
	if err != nil {
		return err
	}
	f := listing.Fetched{Source: string(form), Offers: len(c.Listings), Skipped: append([]catalog.Skip{}, c.Skipped...),
		Summary: intake.Summary(c.Skipped)}
	if f.Offers == 0 {
		return nothingImported(files, form, f)
	}
	name := "import-" + string(form)
	if provider != "" {
		name += "-" + provider
	}
	if form == feed.Kubernetes || form == feed.Slurm { // machines that left a cluster are no longer for sale
		f.Kept, err = f.Offers, feed.Save(a.Data, name, c)
	} else {
		f.Kept, err = feed.Keep(a.Data, name, c)
	}
	if err != nil {
		return err
	}
	return a.tell(f)
}

// readPage reads a file and its modification time.
func readPage(name string) ([]byte, time.Time, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("import prices: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("import prices: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, mostStream+1))
	switch {
	case err != nil:
		return nil, time.Time{}, fmt.Errorf("import prices: %w", err)
	case len(b) > mostStream:
		return nil, time.Time{}, fmt.Errorf("import %s: it has more than 2 GiB", name)
	}
	return b, info.ModTime().UTC(), nil
}
