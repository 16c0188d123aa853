//go:build !local

package stock

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	filter "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/ec2decode"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
)

// acceleratorName returns the catalogue's name of an accelerator that EC2 identifies by maker and name.
func acceleratorName(machine, maker, name string, memory size.Bytes) string {
	if a, ok := account.Known().Accelerators[machine]; ok {
		return a
	}
	if maker == "AMD" {
		name = "radeon " + name
	}
	return accelerator.Resolve(name, machine, memory)
}

// rateOf returns the product's on-demand price per unit in the first tier; false if it has none above zero.
func rateOf(p *ec2decode.Product, unit string) (money.Rate, bool) {
	for _, d := range p.Prices {
		r, err := money.ParseRate(d.USD)
		if d.Unit == unit && (d.Begin == "" || d.Begin == "0") && err == nil && r > 0 {
			return r, true
		}
	}
	return 0, false
}

// bySize lists the volumes besides gp3 whose whole price is by size. AWS also charges the operations of the others.
var bySize = []types.VolumeType{types.VolumeTypeGp2, types.VolumeTypeSt1, types.VolumeTypeSc1}

// ReadPrices reads the on-demand prices of machines and disks. If the price list cannot be read, it uses the
// catalogue's prices.
func (d *Reader) ReadPrices(ctx context.Context, a *account.Client, x *Stock) error {
	x.Listed, x.Disk, x.DiskKnown = map[string]Price{}, d.With.DiskPrice, d.With.DiskPriced
	machines := map[string]string{"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
		"capacitystatus": "Used", "marketoption": "OnDemand"}
	err := d.products(ctx, a, machines, func(p *ec2decode.Product) {
		if rate, ok := rateOf(p, "Hrs"); ok && d.With.Wants(p.Machine) {
			x.Listed[p.Machine] = Price{rate, d.Now().UTC(), "aws"}
		}
	})
	if err == nil && !x.DiskKnown {
		disks := map[string]string{"productFamily": "Storage", "volumeApiName": "gp3"}
		err = d.products(ctx, a, disks, func(p *ec2decode.Product) {
			if rate, ok := rateOf(p, "GB-Mo"); ok {
				x.Disk, x.DiskKnown = rate, true
			}
		})
	}
	x.Volumes = map[types.VolumeType]money.Rate{}
	for _, v := range bySize {
		if err != nil {
			break
		}
		err = d.products(ctx, a, map[string]string{"productFamily": "Storage", "volumeApiName": string(v)},
			func(p *ec2decode.Product) {
				if rate, ok := rateOf(p, "GB-Mo"); ok {
					x.Volumes[v] = rate
				}
			})
	}
	x.PricesAt = d.Now()
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.Log.Warn("cannot read the price list: using the catalogue's prices", "engine", d.Name, "error", account.SaidBy(err))
		x.PricesAt = d.Now().Add(pricesAgain - PricesFor)
	}
	for _, l := range account.Known().OnDemand[d.With.Region] {
		o := l.Offer
		if _, has := x.Listed[o.Machine]; !has && d.With.Wants(o.Machine) {
			x.Listed[o.Machine] = Price{l.Quote.Rate, l.Quote.At, "catalogue"}
		}
	}
	return nil
}

// products reads the EC2 products of the region with the given attributes.
func (d *Reader) products(ctx context.Context, a *account.Client, has map[string]string,
	each func(*ec2decode.Product)) error {
	in := &pricing.GetProductsInput{ServiceCode: sdk.String("AmazonEC2"), FormatVersion: sdk.String("aws_v1"),
		MaxResults: sdk.Int32(100)}
	has["regionCode"] = d.With.Region
	if len(d.With.Types) == 1 && has["volumeApiName"] == "" && !setting.IsPattern(d.With.Types[0]) {
		has["instanceType"] = d.With.Types[0]
	}
	for field, value := range has {
		in.Filters = append(in.Filters, filter.Filter{Type: filter.FilterTypeTermMatch, Field: sdk.String(field),
			Value: sdk.String(value)})
	}
	pages := pricing.NewGetProductsPaginator(a.Prices, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, ec2decode.LeanProducts)
		if err != nil {
			return err
		}
		for _, text := range page.PriceList {
			if p, ok := ec2decode.ProductOf(text); ok { // a product in another form has no price
				each(&p)
			}
		}
	}
	return nil
}
