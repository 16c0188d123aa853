package offers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/view/convert"
)

// shownOffers is the number of offers shown on a terminal.
const shownOffers = 30

// offerFlags select offers.
type offerFlags struct {
	gpu, memory, ram, maxPrice, age string
	cpus                            int
	regions, providers, machines    []string
	zones, terms, platforms         []string
	spot, onDemand, reserved        bool
}

func (f *offerFlags) add(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.gpu, "gpu", "", "`kind` and count: H100, H100:8, A100-80GB:2+, L4:1..4; none for machines without")
	s.StringVar(&f.memory, "min-memory", "", "what one accelerator must have, as `size` with its unit: 80GB")
	s.IntVar(&f.cpus, "cpus", 0, "least `number` of processors")
	s.StringVar(&f.ram, "ram", "", "least memory of the machine, as `size` with its unit: 64GiB")
	s.StringSliceVar(&f.regions, "region", nil, "`pattern` of regions or zones: eu-*, us-east-1a (may be repeated)")
	s.StringSliceVar(&f.providers, "provider", nil, "`pattern` of providers: aws, gcp (may be repeated)")
	s.StringSliceVar(&f.machines, "machine", nil, "`pattern` of machine types: p5*, g2-standard-* (may be repeated)")
	s.StringSliceVar(&f.zones, "zone", nil,
		"`pattern` of zones, of what is sold by the zone: us-east-1* (may be repeated)")
	s.StringSliceVar(&f.terms, "term", nil, "`pattern` of terms: reserved-1y-*, savings-plan-*, committed-*, "+
		"preemptible; * is all (default none: paid while it is used; with --reserved all; may be repeated)")
	s.StringSliceVar(&f.platforms, "platform", nil, "`pattern` of managed platforms: sagemaker, vertex, azureml; "+
		"* is all, with the raw machines (default raw; may be repeated)")
	s.BoolVar(&f.spot, "spot", false, "spot capacity only, or besides other kinds that are asked for")
	s.BoolVar(&f.onDemand, "on-demand", false, "on-demand capacity, likewise")
	s.BoolVar(&f.reserved, "reserved", false, "reserved and owned capacity, likewise")
	s.StringVar(&f.maxPrice, "max-price", "", "highest `price` of a machine's hour: 12.50; offers without a price are "+
		"left out")
	s.StringVar(&f.age, "max-age", "", "`age` from which a price is marked: 24h, 7d (default 7d, spot 1h, reserved 90d)")
}

// filter converts the flags to a filter.
func (f *offerFlags) filter() (catalog.Filter, listing.Limits, error) {
	want := catalog.Filter{CPUs: f.cpus, Regions: f.regions, Providers: f.providers, Machines: f.machines,
		Zones: f.zones, Terms: f.terms, Platforms: f.platforms}
	if len(f.terms) == 0 && !f.reserved {
		want.Terms = []string{catalog.NoTerm}
	}
	if len(f.platforms) == 0 {
		want.Platforms = []string{catalog.Raw}
	}
	var limits listing.Limits
	if f.gpu != "" {
		if err := want.ParseAccelerator(f.gpu); err != nil {
			return want, limits, fmt.Errorf("--gpu %w", err)
		}
	}
	if err := f.least(&want); err != nil {
		return want, limits, err
	}
	if f.maxPrice != "" {
		rate, err := money.ParseRate(strings.TrimPrefix(f.maxPrice, "$"))
		if err != nil || rate <= 0 {
			return want, limits, fmt.Errorf("--max-price %q is not a price above zero, such as 12.50", f.maxPrice)
		}
		want.MaxRate = rate
	}
	if f.age != "" {
		d, err := days(f.age)
		if err != nil || d <= 0 {
			return want, limits, fmt.Errorf("--max-age %q is not an age such as 24h or 7d", f.age)
		}
		limits.Age = d
	}
	for _, k := range []struct {
		on   bool
		kind market.Capacity
	}{{f.spot, market.Spot}, {f.onDemand, market.OnDemand}, {f.reserved, market.Reserved}} {
		if k.on {
			want.Capacity = append(want.Capacity, k.kind)
		}
	}
	return want, limits, want.Check()
}

// least parses the minimum sizes of a machine.
func (f *offerFlags) least(want *catalog.Filter) error {
	for _, m := range []struct {
		name, text string
		to         *size.Bytes
	}{{"--min-memory", f.memory, &want.Memory}, {"--ram", f.ram, &want.RAM}} {
		if m.text == "" {
			continue
		}
		n, err := size.Parse(m.text)
		if err != nil || n <= 0 {
			return fmt.Errorf("%s %q is not a size with its unit, such as 80GB", m.name, m.text)
		}
		*m.to = n
	}
	if f.cpus < 0 {
		return fmt.Errorf("--cpus %d is below zero", f.cpus)
	}
	return nil
}

// days parses a duration that may be in days.
func days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		d, err := time.ParseDuration(n + "h")
		return 24 * d, err
	}
	return time.ParseDuration(s)
}

// LoadCatalog reads the catalogue of the data folder and notes skipped rows.
func LoadCatalog(a *command.App) (catalog.Catalog, []feed.Copy, error) {
	c, copies, err := feed.Load(a.Data)
	if err != nil {
		return c, copies, err
	}
	if len(c.Skipped) > 0 {
		a.Notef("note: skipped rows of the catalogue: %s. scrimp catalog show lists them.\n", intake.Summary(c.Skipped))
	}
	return c, copies, nil
}

// Seen returns the hazards that the data folder's server has observed, by spot offer, and the providers that its
// engines rent from. Both are empty if no server runs.
func Seen(ctx context.Context, a *command.App) (all map[market.OfferID]policy.Hazard, providers []string) {
	all, providers = map[market.OfferID]policy.Hazard{}, []string{}
	c, err := a.Open(ctx)
	if err != nil {
		return all, providers
	}
	var m api.Market
	if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		a.Notef("note: what was seen of interruptions is left out: %v\n", err)
	}
	for _, l := range m.Offers {
		if !slices.Contains(providers, l.Offer.Provider) {
			providers = append(providers, l.Offer.Provider)
		}
		if l.Hazard.Served > 0 {
			all[market.OfferID(l.Offer.ID)] = convert.To[policy.Hazard](l.Hazard)
		}
	}
	slices.Sort(providers)
	return all, providers
}

func (a *app) offersCmd() *cobra.Command {
	var f offerFlags
	var order string
	var most int
	cmd := &cobra.Command{
		Use:     "offers",
		GroupID: command.GroupMoney,
		Aliases: []string{"gpus"},
		Short:   "List offers: machines, prices, and compute for the dollar",
		Long: "Lists the machines of the catalogue: what they have, what an hour costs and how old that price is, how " +
			"long before it interrupts a spot machine a provider warns, and what share of them was interrupted within a " +
			"month as " +
			"published (RISK), and how many interruptions the server has seen in how much time (INTERRUPTIONS). " +
			"Raw machines that are paid while they are used are listed; --term lists what is bought for a year or three, " +
			"with what is paid up front, and --platform managed platforms beside the raw machine. " +
			"With --gpu, what is known of that accelerator stands below. Without flags it lists all of the first kind.\n\n" +
			"The program " +
			"carries a dated catalogue; scrimp catalog update fetches newer prices, and " + feed.PricesName +
			" in the data folder holds your own prices, discounts and machines. " +
			"It works without a network and starts no server.\n\nExit status: 0 listed, 2 no matching offers, 1 error.",
		Example: "  scrimp offers --gpu H100:8\n  scrimp offers --min-memory 80GB --region 'eu-*' --spot\n" +
			"  scrimp offers --gpu L4 --sort value --json\n" +
			"  scrimp offers --gpu H100:8 --term '*' --platform '*'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, limits, err := f.filter()
			if err != nil {
				return err
			}
			if most < 0 {
				return fmt.Errorf("--limit %d is below zero", most)
			}
			c, _, err := LoadCatalog(a.App)
			if err != nil {
				return err
			}
			list := c.Beside(c.Match(want))
			if err := listing.SortOffers(list, order); err != nil {
				return err
			}
			now := a.Now().UTC()
			seen, _ := Seen(cmd.Context(), a.App)
			if a.JSON {
				for _, l := range list {
					if err := a.Print(listing.OfferOf(l, seen[l.Offer.ID], now, limits)); err != nil {
						return err
					}
				}
			} else {
				var kinds []accelerator.Accelerator
				if want.Accelerator != "" {
					for _, k := range accelerator.Accelerators() {
						if accelerator.Matches(want.Accelerator, k.Name) {
							kinds = append(kinds, k)
						}
					}
				}
				a.Printf("%s", listing.Offers(list, seen, kinds, most, limits, now, a.Place()))
				a.Printf("%s", listing.Apart(c, want, len(list), a.Place()))
				if len(list) == 0 {
					a.Notef("%s", listing.Nearly(c, want, a.Line()))
				}
			}
			if len(list) == 0 {
				return command.Infeasible
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&order, "sort", "price", "`order`: "+strings.Join(listing.Orders, ", "))
	cmd.Flags().IntVar(&most, "limit", shownOffers, "how many offers to show; 0 is all; --json has all")
	return cmd
}
