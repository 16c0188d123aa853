package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/focus"
)

func (a *app) pricesCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: "prices", Short: "Write what is for sale now as a price sheet", Args: command.Takes(),
		Long: "Writes every offer that the server knows with its price, where that is known: an empty price is unknown. " +
			"Columns that FOCUS has are named as there, and SkuPriceId is that of the rows of scrimp export focus." +
			command.PlainExit,
		Example: "  scrimp export prices -o prices.csv",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			to, err := a.target(&f, sheetColumns())
			if err != nil {
				return err
			}
			var v client.Market
			if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &v); err != nil {
				return err
			}
			return to.write(ctx, sheetOf(v))
		})}
	f.add(cmd, "FILE.csv, FILE.csv.gz or FILE.parquet")
	return cmd
}

// offer is a row of the sheet.
type offer struct {
	client.Listing
	list string // price of an on-demand machine of the same type in the region
}

// sheet lists the columns of a price sheet.
var sheet = []struct {
	column
	of func(*offer) string
}{
	{column{"SkuPriceId", focus.Text, false}, func(o *offer) string {
		return focus.PriceID(o.Offer.Provider, o.Offer.Region, o.Offer.Machine, string(o.Offer.Capacity))
	}},
	{column{"SkuId", focus.Text, true}, func(o *offer) string { return focus.SkuID(o.Offer.Machine) }},
	{column{"ServiceProviderName", focus.Text, true}, func(o *offer) string {
		return focus.ProviderID(o.Offer.Provider)
	}},
	{column{"RegionId", focus.Text, true}, func(o *offer) string { return focus.RegionID(o.Offer.Region) }},
	{column{"AvailabilityZone", focus.Text, true}, func(o *offer) string { return focus.ID("zone", o.Offer.Zone) }},
	{column{"PricingCategory", focus.Text, true}, func(o *offer) string { return category[o.Offer.Capacity] }},
	{column{"PricingUnit", focus.Text, true}, func(*offer) string { return "Hours" }},
	{column{"PricingCurrency", focus.Text, true}, func(o *offer) string { return string(o.Offer.Currency) }},
	{column{"UnitPrice", focus.Decimal, true}, func(o *offer) string { return o.price() }},
	{column{"ListUnitPrice", focus.Decimal, true}, func(o *offer) string { return o.list }},
	{column{"x_Offer", focus.Text, false}, func(o *offer) string { return focus.ID("offer", o.Offer.ID) }},
	{column{"x_Capacity", focus.Text, true}, func(o *offer) string { return string(o.Offer.Capacity) }},
	{column{"x_Accelerator", focus.Text, true}, func(o *offer) string {
		return focus.ID("accelerator", o.Offer.Accelerator)
	}},
	{column{"x_Accelerators", focus.Text, true}, func(o *offer) string { return count(o.Offer.Accelerators) }},
	{column{"x_CPUs", focus.Text, true}, func(o *offer) string { return count(o.Offer.CPUs) }},
	{column{"x_MemoryBytes", focus.Text, true}, func(o *offer) string { return count(int(o.Offer.Memory)) }},
	{column{"x_Since", focus.Time, true}, func(o *offer) string { return moment(o.Quote.At) }},
	{column{"x_Source", focus.Text, true}, func(o *offer) string { return focus.ID("source", o.Quote.Source) }},
}

var category = map[client.Capacity]string{client.Spot: "Dynamic", client.OnDemand: "Standard",
	client.Reserved: "Committed"}

func (o *offer) price() string {
	if !o.Quote.Priced {
		return ""
	}
	return focus.Number(o.Quote.Rate.String())
}

func count(n int) string {
	if n == 0 {
		return "" // unknown or none
	}
	return strconv.Itoa(n)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

func sheetColumns() (list []column) {
	for _, c := range sheet {
		list = append(list, c.column)
	}
	return list
}

// sheetOf returns the market as CSV.
func sheetOf(v client.Market) io.Reader {
	type machine struct{ provider, region, name string }
	list := map[machine]string{} // lowest on-demand price of each machine
	least := map[machine]client.Quote{}
	for _, l := range v.Offers {
		k := machine{l.Offer.Provider, l.Offer.Region, l.Offer.Machine}
		if at, seen := least[k]; l.Offer.Capacity == client.OnDemand && l.Quote.Priced && (!seen || l.Quote.Rate < at.Rate) {
			least[k], list[k] = l.Quote, focus.Number(l.Quote.Rate.String())
		}
	}
	var text bytes.Buffer
	out := csv.NewWriter(&text) // writes to memory, so it cannot fail
	var row []string
	for _, c := range sheet {
		row = append(row, c.name)
	}
	_ = out.Write(row)
	for _, l := range v.Offers {
		o := &offer{l, list[machine{l.Offer.Provider, l.Offer.Region, l.Offer.Machine}]}
		row = row[:0]
		for _, c := range sheet {
			row = append(row, c.of(o))
		}
		_ = out.Write(row)
	}
	out.Flush()
	return &text
}
