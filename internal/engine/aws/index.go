//go:build !local

package aws

import (
	"context"

	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/engine/aws/survey"
	"scrimp/internal/market/resource"
)

// indexed returns what the region sells, read again if it is too old.
func (d *Driver) indexed(ctx context.Context) (*sale.Index, error) {
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	d.mu.Lock()
	x := sale.Index{}
	if d.index != nil {
		x = *d.index
	}
	d.mu.Unlock()
	now := d.now()
	from := stock.Reader{Name: d.name, With: &d.with, Now: d.now, Log: d.log}
	if now.Sub(x.TypesAt) > stock.TypesFor {
		if err := from.ReadTypes(ctx, a, &x.Stock); err != nil {
			return nil, err
		}
		x.TypesAt = now
	}
	if now.Sub(x.PricesAt) > stock.PricesFor {
		if err := from.ReadPrices(ctx, a, &x.Stock); err != nil {
			return nil, err
		}
	}
	if now.Sub(x.SpotAt) > stock.SpotFor {
		if x.Spot, err = from.ReadSpot(ctx, a, &x.Stock); err != nil {
			return nil, err
		}
		x.SpotAt = now
	}
	d.book.Read(ctx, a, &x.Stock, &x.Held, d.outside)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index = &x
	return &x, nil
}

// Resources lists the machines and volumes of the account in the region, whoever made them.
func (d *Driver) Resources(ctx context.Context) ([]resource.Resource, error) {
	list, err := survey.List(ctx, d.with.Region, d.connected, d.indexed)
	return list, d.explain(err)
}
