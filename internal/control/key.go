package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
)

// A launch's key and tags carry the installation and its incarnation, so that two
// installations, or a log and its restored copy, tell their machines apart on one
// provider: INSTALLATION-INCARNATION-ALLOCATION.

// Tags that each machine carries.
const (
	tagInstallation = "scrimp-installation"
	tagIncarnation  = "scrimp-incarnation"
	tagJob          = "scrimp-job"
	tagAttempt      = "scrimp-attempt"
)

// placeKey is the name under which the store keeps where the log lies.
const placeKey = "place"

// tags are those of a launch's machines.
func (c *Control) tags(a core.Launch) map[string]string {
	return map[string]string{
		tagInstallation: c.installation, tagIncarnation: fmt.Sprint(c.incarnation), tagJob: a.Job, tagAttempt: a.Allocation,
	}
}

// prefix is what the keys of this incarnation begin with.
func (c *Control) prefix() string { return fmt.Sprintf("%s-%d-", c.installation, c.incarnation) }

// keyOf is the key of an allocation at a provider.
func (c *Control) keyOf(allocation string) string { return c.prefix() + allocation }

// Asked are the keys of the launches that a provider was asked for and that are not answered.
func (c *Control) Asked(provider string) (keys []string) {
	c.ReadUncommitted(func(m *core.Machine) {
		for a := range m.State().Allocations() {
			if a.Machine().Provider == provider {
				keys = append(keys, c.keyOf(a.ID()))
			}
		}
	})
	slices.Sort(keys)
	return keys
}

// ourName is the name of the allocation that a key stands for; the key itself where it
// is of another installation or incarnation.
func (c *Control) ourName(key string) string {
	name, _ := strings.CutPrefix(key, c.prefix())
	return name
}

// AllocationOf is the allocation that a key stands for; false where it is of another installation or incarnation.
func (c *Control) AllocationOf(key string) (string, bool) { return strings.CutPrefix(key, c.prefix()) }

// foreign reports whether a machine is of another installation, or of another
// incarnation and not adopted: it is shown, and never ended.
func (c *Control) foreign(i *engine.Instance) bool {
	if strings.HasPrefix(i.Key, c.prefix()) || i.Tags[tagInstallation] == "" {
		return false
	}
	adopted := false
	c.ReadUncommitted(func(m *core.Machine) { adopted = m.Awaits(i.ID) })
	return !adopted
}

// Mine reports whether this server may end a machine: it is not another's, and does not
// wait for somebody to say whose it is.
func (c *Control) Mine(i *engine.Instance) bool {
	open := false
	c.ReadUncommitted(func(m *core.Machine) {
		known := m.State().Instance(i.ID)
		open = known != nil && known.Disowned()
	})
	return !open && !c.foreign(i)
}

// incarnate says of which installation and incarnation the log is. One that lies in
// another place than it was made in was restored or copied: it begins the next
// incarnation, whose first inventory only lists. after is to be done once the event is durable.
func (c *Control) incarnate(ctx context.Context) (begun core.Body, after func() error, err error) {
	place, err := c.store.Place(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find where the log lies: %w", err)
	}
	known, _, err := c.store.Meta(ctx, placeKey)
	if err != nil {
		return nil, nil, fmt.Errorf("read where the log lay: %w", err)
	}
	st := c.machine.State()
	c.installation, c.incarnation = st.Installation(), st.Incarnation()
	switch {
	case c.installation == "":
		var id [4]byte
		_, _ = rand.Read(id[:]) // it never fails
		c.installation, c.incarnation = hex.EncodeToString(id[:]), 1
		if err := c.store.PutMeta(ctx, placeKey, place); err != nil { // before the event, or a crash would look like a copy
			return nil, nil, fmt.Errorf("keep where the log lies: %w", err)
		}
	case known == place:
		return nil, func() error { return nil }, nil
	default:
		c.incarnation++
		c.cfg.Log.Warn("the log was restored or copied: machines that it knows of may be another's. Decide with scrimp "+
			"adopt or scrimp release", "installation", c.installation, "incarnation", c.incarnation)
	}
	begun = core.IncarnationBegun{Installation: c.installation, Incarnation: c.incarnation}
	return begun, func() error { return c.store.PutMeta(ctx, placeKey, place) }, nil
}

// ours leaves out the machines of other installations and incarnations, and keeps them
// to be shown.
func (c *Control) ours(s *source, list []engine.Instance) []engine.Instance {
	var mine, others []engine.Instance
	for _, i := range list {
		if c.foreign(&i) {
			others = append(others, i)
		} else {
			mine = append(mine, i)
		}
	}
	c.mu.Lock()
	s.others = others
	c.mu.Unlock()
	return mine
}

// Foreign are the machines that the newest inventories showed of other installations, or of
// other incarnations of this one, with their tags.
func (c *Control) Foreign() []engine.Instance {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var others []engine.Instance
	for _, s := range c.sources {
		others = append(others, s.others...)
	}
	return others
}
