//go:build !local

package aws

import (
	"errors"
	"slices"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/market"
)

// refused returns the meaning of an EC2 error for a launch; nil if it is not a refusal.
func (d *Driver) refused(code, text string) error {
	return account.Refused(d.name, &d.with, code, text)
}

// explain adds the meaning of an EC2 error for this engine, and the fix.
func (d *Driver) explain(err error) error { return account.Explain(d.name, &d.with, err) }

// unanswered reports whether the failed request may have been carried out.
func (d *Driver) unanswered(err error) bool { return account.Unanswered(d.name, &d.with, err) }

// grants notes what EC2 has granted, sorted by id.
func (d *Driver) grants(ids []string) []string {
	slices.Sort(ids)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.recent[id] = d.now()
	}
	return ids
}

// noRoom returns err, after noting it if it reports missing capacity.
func (d *Driver) noRoom(o market.OfferID, err error) error {
	if errors.Is(err, engine.ErrNoCapacity) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.full[o] = d.now()
	}
	return err
}
