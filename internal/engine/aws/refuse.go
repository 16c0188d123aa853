//go:build !local

package aws

import (
	"errors"
	"slices"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/market"
)

// refused is what an answer of EC2 means for a launch; nil where it is none that refuses.
func (d *Driver) refused(code, text string) error {
	return account.Refused(d.name, &d.with, code, text)
}

// explain says what an error of EC2 means for this engine, and what to do.
func (d *Driver) explain(err error) error { return account.Explain(d.name, &d.with, err) }

// unanswered reports whether the request that an error is of may have been done.
func (d *Driver) unanswered(err error) bool { return account.Unanswered(d.name, &d.with, err) }

// grants notes what EC2 has granted, in the order of their ids.
func (d *Driver) grants(ids []string) []string {
	slices.Sort(ids)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.recent[id] = d.now()
	}
	return ids
}

// noRoom is err, of which is noted where it says that there is no capacity.
func (d *Driver) noRoom(o market.OfferID, err error) error {
	if errors.Is(err, engine.ErrNoCapacity) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.full[o] = d.now()
	}
	return err
}
