//go:build !local

package aws

import (
	"slices"

	"scrimp/internal/engine/aws/account"
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
