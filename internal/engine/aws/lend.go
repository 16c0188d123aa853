//go:build !local

package aws

import (
	"context"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/lend"
)

// Lends implements engine.Lender.
func (d *Driver) Lends() (scopedcreds.Store, bool) {
	if d.with.Bucket == nil {
		return scopedcreds.Store{}, false
	}
	return *d.with.Bucket, true
}

// Lend implements engine.Lender.
func (d *Driver) Lend(ctx context.Context, prefix, job string) (scopedcreds.Credentials, error) {
	a, err := d.connected(ctx)
	if err != nil {
		return scopedcreds.Credentials{}, err
	}
	return lend.Credentials(ctx, a, d.name, &d.with, prefix, job)
}

// Exports implements engine.Exporter.
func (d *Driver) Exports() (engine.Export, bool) {
	if d.with.Export == nil {
		return engine.Export{}, false
	}
	return *d.with.Export, true
}
