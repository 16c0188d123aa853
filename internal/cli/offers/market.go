package offers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/view/convert"
)

// published returns the catalogue's interruption rate of each spot offer: that of its machine type in its region, or
// else in all listed regions.
func published(m api.Market, c catalog.Catalog) map[market.OfferID]listing.Share {
	all := map[market.OfferID]listing.Share{}
	for _, l := range m.Offers {
		id, near := market.OfferID(l.Offer.ID), false
		for _, k := range c.Listings {
			if l.Offer.Capacity != api.Spot || k.Offer.Capacity != market.Spot || k.Offer.Machine != l.Offer.Machine ||
				!k.Risk.Known {
				continue
			}
			here := k.Offer.Region == l.Offer.Region
			old, ok := all[id]
			switch {
			case !ok || here && !near:
				all[id], near = listing.Share{Low: k.Risk.Low, High: k.Risk.High}, here
			case here == near:
				all[id] = listing.Share{Low: min(old.Low, k.Risk.Low), High: max(old.High, k.Risk.High)}
			}
		}
	}
	return all
}

func (a *app) marketCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "market", Short: "Show the server's market: prices, and interruptions seen",
		Args:    command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Shows the offers: PRICE/H in the offers' currency, NOTICE between the warning of an " +
			"interruption and the machine's end, INTERRUPTIONS how many were seen in how much time of all machines of that " +
			"type, PUBLISHED what share the catalogue's sources say is interrupted within a month (scrimp catalog update, " +
			"import)." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var m api.Market
			if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
				return err
			}
			sale := listing.Sale{Market: m}
			if cat, _, err := LoadCatalog(a.App); err == nil {
				sale.Published = published(m, cat)
			} else {
				a.Notef("note: what is published of interruptions is left out: %v\n", err)
			}
			return a.Show(sale, sale.Text(a.Place()))
		})}
	cmd.AddCommand(a.marketRecordCmd(), a.marketGenerateCmd(), a.marketImportCmd())
	return cmd
}

// writeMarket prints a market file, or writes it to out.
func (a *app) writeMarket(t market.Trace, note, out string) error {
	if a.JSON {
		return a.Print(t)
	}
	text := marketfile.Encode(t, note)
	if out == "" {
		a.Printf("%s", text)
		return nil
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("write -o: %w", err)
	}
	a.Notef("%s: %d offers. Play a job on it: scrimp simulate job.yaml --market %s\n", out, len(t.Lines), out)
	return nil
}

func (a *app) marketRecordCmd() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "record", Short: "Write the recorded market as a market file", Args: command.Takes(),
		Long: "Writes the market that the server's log recorded, prices and availability of spot, as a market file: " +
			"for simulations, or to generate more markets like it." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var h api.History
			if err := c.Do(ctx, http.MethodGet, "/v1/history", nil, &h); err != nil {
				return err
			}
			if len(h.Trace.Lines) == 0 {
				return fmt.Errorf("the server has seen no prices yet")
			}
			return a.writeMarket(convert.To[market.Trace](h.Trace),
				"recorded from "+h.Opened.UTC().Format(time.RFC3339)+" on", out)
		})}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write into this `file` (default: print)")
	return cmd
}

func (a *app) marketGenerateCmd() *cobra.Command {
	var from, out string
	var seed uint64
	length := 30 * 24 * time.Hour
	cmd := &cobra.Command{
		Use: "generate", Short: "Generate a market like another one", Args: command.Takes(),
		Long: `Fits a semi-Markov model to a market: how long each offer stays available, and away, and how its price
moves. Then draws a market from it. The same seed draws the same market.` + command.PlainExit,
		Example: "  scrimp market generate --from recorded.yaml --seed 7 --length 720h -o drawn.yaml",
		RunE: func(_ *cobra.Command, _ []string) error {
			t, err := marketfile.Load(from)
			if err != nil {
				return err
			}
			drawn, err := market.Fit(t, 0).Generate(length, seed)
			if err != nil {
				return fmt.Errorf("--length: %w", err)
			}
			return a.writeMarket(drawn, fmt.Sprintf("drawn from %s with seed %d", t.Name, seed), out)
		}}
	cmd.Flags().StringVar(&from, "from", "stormy", "market `file` to fit, or calm or stormy")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "which market to draw")
	cmd.Flags().DurationVar(&length, "length", length, "how long it is until it repeats")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write into this `file` (default: print)")
	return cmd
}

func (a *app) marketImportCmd() *cobra.Command {
	var out, spot, demand, memory, ones string
	m := marketfile.Import{}
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Turn public traces and price histories into a market file", Args: command.Takes("FILE…"),
		Long: `Reads, each in its own form: preemption and availability traces in JSON ({"metadata": {"gap_seconds": …},
"data": [0, 1, …], "prices": […]}, one zone a file, named as the file), the answer of AWS
(describe-spot-price-history, JSON), and run-length CSV (zone,start_tick,ticks,available), with a second
file of prices (usd_per_hour in place of available) where there is one.` + command.PlainExit,
		Example: `  scrimp market import us-west-2a.json us-west-2b.json --spot-price 0.97 --on-demand-price 3.06 -o v100.yaml
  scrimp market import up.csv prices.csv --window 0 --tick 195s --on-demand-price 3.06 -o zones.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			if spot != "" {
				if m.Spot, err = money.ParseRate(spot); err != nil {
					return fmt.Errorf("--spot-price: %w", err)
				}
			}
			if demand != "" {
				if m.OnDemand, err = money.ParseRate(demand); err != nil {
					return fmt.Errorf("--on-demand-price: %w", err)
				}
			}
			if m.Memory, err = size.Parse(memory); err != nil {
				return fmt.Errorf("--memory: %w", err)
			}
			switch ones {
			case "available", "preempted":
				m.OnesAvailable = ones == "available"
			default:
				return fmt.Errorf("--ones %q is neither available nor preempted", ones)
			}
			if m.GPU != "" && m.GPUs == 0 {
				m.GPUs = 1
			}
			var files []marketfile.Source
			for _, name := range args {
				text, err := os.ReadFile(name)
				if err != nil {
					return fmt.Errorf("read: %w", err)
				}
				files = append(files, marketfile.Source{Name: name, Text: text})
			}
			t, err := m.Import(files)
			if err != nil {
				return err
			}
			return a.writeMarket(t, "imported", out)
		}}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "write into this `file` (default: print)")
	f.StringVar(&m.Name, "name", "", "name of the market (default imported)")
	f.StringVar(&spot, "spot-price", "", "`dollars` an hour of spot, where the file has no prices (default: required "+
		"there)")
	f.StringVar(&demand, "on-demand-price", "", "`dollars` an hour of on-demand (default: none is sold)")
	f.StringVar(&m.Machine, "machine", "", "`name` of the machine type, where the file has none (default machine)")
	f.IntVar(&m.CPUs, "cpus", 8, "processors of the machine")
	f.StringVar(&memory, "memory", "61GiB", "its memory")
	f.StringVar(&m.GPU, "accelerator", "", "`name` of its accelerator (default none)")
	f.IntVar(&m.GPUs, "accelerators", 0, "how many it has (default 1 of an accelerator that is named)")
	f.DurationVar(&m.Tick, "tick", 0, "time between two values, where the file does not say (default: required there)")
	f.StringVar(&m.Window, "window", "", "which `window` of a CSV file with several (default: required there)")
	f.DurationVar(&m.Notice, "notice", 2*time.Minute, "notice before spot is interrupted")
	f.StringVar(&ones, "ones", "preempted", "what a 1 stands for in JSON data: preempted or available")
	return cmd
}
