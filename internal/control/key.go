package control

import "strings"

// A launch's key and tags carry the installation and its incarnation, so that two
// installations, or a log and its restored copy, tell their machines apart on one
// provider: INSTALLATION-INCARNATION/ALLOCATION.

// Tags that each machine carries.
const (
	tagInstallation = "scrimp-installation"
	tagIncarnation  = "scrimp-incarnation"
	tagJob          = "scrimp-job"
	tagAttempt      = "scrimp-attempt"
)

// keyOf is the key of an allocation at a provider.
func (c *Control) keyOf(allocation string) string { return c.prefix() + allocation }

// prefix is what the keys of this incarnation begin with.
func (c *Control) prefix() string { return c.identity() + "/" }

// ourName is the name of the allocation that a key stands for; the key itself where it
// is of another installation or incarnation.
func (c *Control) ourName(key string) string {
	name, _ := strings.CutPrefix(key, c.prefix())
	return name
}
