//go:build !local

package aws

import (
	"context"
	"time"

	"scrimp/internal/engine/aws/stock"
)

// index holds what a region sells to the account, and the account's reservations there.
type index struct {
	stock.Stock
	held    []held // reservations of capacity; nil: none are configured, or they were never read
	heldAt  time.Time
	heldErr error // error of the last read
}

// indexed returns what the region sells, read again if it is too old.
func (d *Driver) indexed(ctx context.Context) (*index, error) {
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
	x := index{}
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
	d.readHeld(ctx, a, &x, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index = &x
	return &x, nil
}
