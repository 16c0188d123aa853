package commit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/lib/draw"
	"scrimp/internal/work/commit"
)

// shown lists the falls of demand in a plan, in ten thousandths.
var shown = []int64{1000, 2500, 5000, 7500, 10_000}

// planFlags holds the flags of scrimp commit plan.
type planFlags struct {
	flags
	discount, terms, term string
	held                  []string
}

func (a *app) planCmd() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use: "plan --demand FILE (--discount SHARE | --terms FILE)", Short: "Plan the purchases of the coming twelve months",
		Long: `Plans the purchases of the coming twelve months from the demand of each hour so far: how many units to buy now,
and what to expect to buy later if demand goes on. It says the month by which what is bought now has paid off,
coverage, utilisation, and the regret if demand falls right after the purchase: what its term then costs more than
with the best level of each month.

--terms names a file of prices: on_demand (price, source) and terms (name, kind, years, upfront, hourly, source),
for one unit. kind is reserved, savings-plan or committed-use. See docs/commit.md. Without it --discount says how much
cheaper a committed hour is, and no dollars are shown. All but what is owed are estimates.

With --json: one object for each region and term. Exit status: 0 done, 1 a file or a flag cannot be used.`,
		Example: `  scrimp commit plan --demand demand.csv --discount 28%
  scrimp commit plan --demand demand.csv --terms terms.yaml --held eu-west=40:2027-05-01`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd, f) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.discount, "discount", "", "`share` by which a committed hour is cheaper: 28% or 0.28 "+
		"(default: --terms says it)")
	cmd.Flags().StringVar(&f.terms, "terms", "", "YAML `file` of prices and terms (default: --discount and --years say "+
		"them)")
	cmd.Flags().StringVar(&f.term, "term", "", "`name` of a term in the --terms file: plan with it alone "+
		"(default: compare all)")
	cmd.Flags().StringSliceVar(&f.held, "held", nil, "`REGION=UNITS:DAY` that is committed already, until the start of "+
		"that day in UTC; may be repeated (default: nothing is)")
	_ = cmd.MarkFlagFilename("terms", "yaml", "yml")
	return cmd
}

func (a *app) plan(cmd *cobra.Command, f planFlags) error {
	switch given := cmd.Flags().Changed; {
	case given("discount") && given("terms"):
		return errors.New("--discount and --terms do not go together: the prices in the --terms file say the discount")
	case !given("discount") && !given("terms"):
		return errors.New("say what a commitment costs: --discount SHARE, or --terms FILE with prices")
	case given("years") && given("terms"):
		return errors.New("--years and --terms do not go together: each term in the --terms file says its years")
	}
	p, err := f.policy()
	if err != nil {
		return err
	}
	terms, offers, err := f.offers()
	if err != nil {
		return err
	}
	d, err := a.read(cmd, f.flags)
	if err != nil {
		return err
	}
	if d.Hours < commit.HistoryDays*24 {
		return fmt.Errorf("%s: has %s: a plan needs %d days of demand", f.demand, draw.Count(d.Hours, "hour"),
			commit.HistoryDays)
	}
	held, err := f.holdings(d)
	if err != nil {
		return err
	}
	for i, r := range d.Regions {
		var list []purchase.Plan
		for _, o := range offers {
			p.Price, p.Months = o.Price, 12*o.Years
			list = append(list, purchase.PlanOf(p.Outlook(r, d.Calendar, held[r.Name], shown), p, o, terms))
		}
		slices.SortStableFunc(list, func(a, b purchase.Plan) int { return cmp.Compare(costOf(a), costOf(b)) })
		if err := a.show(list, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// costOf returns the expected cost of a plan; unknown costs sort last.
func costOf(v purchase.Plan) float64 {
	if v.Year.Cost == nil {
		return 1e9
	}
	return *v.Year.Cost
}

func (a *app) show(list []purchase.Plan, further bool) error {
	for _, v := range list {
		if a.JSON {
			if err := a.Print(v); err != nil {
				return err
			}
		}
	}
	if a.JSON {
		return nil
	}
	if further {
		a.Printf("\n")
	}
	if len(list) > 1 {
		a.Printf("%s: terms, the cheapest of the coming year first\n%s\n", list[0].Region,
			purchase.Terms(list, a.Place()))
	}
	a.Printf("%s", list[0].Text(a.Place()))
	return nil
}

// maxTerms bounds the price file, in bytes.
const maxTerms = 1<<20 + 1

// offers returns what can be bought; terms is nil if no price is known.
func (f planFlags) offers() (*commit.Terms, []commit.Offer, error) {
	if f.terms == "" {
		if f.term != "" {
			return nil, nil, errors.New("--term names a term of the --terms file: give --terms too")
		}
		n, err := price(f.discount)
		if err != nil {
			return nil, nil, err
		}
		name := commit.FormatShare(commit.One-n) + " below on-demand"
		return nil, []commit.Offer{{Name: name, Years: f.years, Price: commit.Share(n)}}, nil
	}
	in, err := os.Open(f.terms)
	if err != nil {
		return nil, nil, fmt.Errorf("read --terms: %w", err)
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, maxTerms))
	if err != nil {
		return nil, nil, fmt.Errorf("read --terms: %w", err)
	}
	t, err := commit.ReadTerms(f.terms, text)
	if err != nil {
		return nil, nil, err
	}
	if f.term == "" {
		return &t, t.Offers, nil
	}
	var names []string
	for _, o := range t.Offers {
		if o.Name == f.term {
			return &t, []commit.Offer{o}, nil
		}
		names = append(names, o.Name)
	}
	return nil, nil, fmt.Errorf("--term %q is none of %s", f.term, strings.Join(names, ", "))
}

// maxHeld bounds the number of units in --held.
const maxHeld = 1000

// holdings parses --held, by region.
func (f planFlags) holdings(d commit.Demand) (map[string][]commit.Purchase, error) {
	out := map[string][]commit.Purchase{}
	for i, text := range f.held {
		region, rest, _ := strings.Cut(text, "=")
		units, day, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseInt(units, 10, 64)
		until, wrong := time.Parse(time.DateOnly, day)
		if err != nil || wrong != nil || n < 1 || n > commit.MaxUnits || i >= maxHeld {
			return nil, fmt.Errorf("--held %q: write REGION=UNITS:DAY such as eu-west=40:2027-05-01, at most %d times", text,
				maxHeld)
		}
		if !slices.ContainsFunc(d.Regions, func(r commit.Region) bool { return r.Name == region }) {
			return nil, fmt.Errorf("--held %q: %s has no region %q with demand", text, f.demand, region)
		}
		hours := until.Sub(d.Calendar.Zero) / time.Hour
		if int(hours) <= d.Hours || until.Year() > 2200 {
			return nil, fmt.Errorf("--held %q: it ends before the demand file does: leave it out", text)
		}
		out[region] = append(out[region], commit.Purchase{Units: n, Hours: int(hours)})
	}
	return out, nil
}
