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

// placeKey is the metadata name of the log's location.
const placeKey = "place"

// tags returns the tags of a launch's machines.
func (c *Control) tags(a core.Launch) map[string]string {
	return map[string]string{
		tagInstallation: c.installation, tagIncarnation: fmt.Sprint(c.incarnation), tagJob: a.Job, tagAttempt: a.Allocation,
	}
}

// prefix begins the keys of this incarnation.
func (c *Control) prefix() string { return fmt.Sprintf("%s-%d-", c.installation, c.incarnation) }

// keyOf returns the launch key of an allocation.
func (c *Control) keyOf(allocation string) string { return c.prefix() + allocation }

// Asked returns the keys of the launches that a provider has not answered yet.
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

// ourName returns the allocation of a key; the key itself if it belongs to another installation or incarnation.
func (c *Control) ourName(key string) string {
	name, _ := strings.CutPrefix(key, c.prefix())
	return name
}

// AllocationOf returns the allocation of a key; false if the key belongs to another installation or incarnation.
func (c *Control) AllocationOf(key string) (string, bool) { return strings.CutPrefix(key, c.prefix()) }

// foreign reports whether a machine belongs to another installation, or to another incarnation and is not adopted.
// Such machines are shown and never terminated.
func (c *Control) foreign(i *engine.Instance) bool {
	if strings.HasPrefix(i.Key, c.prefix()) || i.Tags[tagInstallation] == "" {
		return false
	}
	adopted := false
	c.ReadUncommitted(func(m *core.Machine) { adopted = m.Awaits(i.ID) })
	return !adopted
}

// Mine reports whether this server may terminate a machine: it belongs to this installation and does not wait for a
// user to adopt or release it.
func (c *Control) Mine(i *engine.Instance) bool {
	open := false
	c.ReadUncommitted(func(m *core.Machine) {
		known := m.State().Instance(i.ID)
		open = known != nil && known.Disowned()
	})
	return !open && !c.foreign(i)
}

// incarnate determines the installation and incarnation of the log. A log in another place than before was restored
// or copied, so it starts the next incarnation, whose first inventory only lists. The caller runs after once the
// event is durable.
func (c *Control) incarnate(ctx context.Context) (begun core.Body, after func() error, err error) {
	place, err := c.store.Place(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find the location of the log: %w", err)
	}
	known, _, err := c.store.Meta(ctx, placeKey)
	if err != nil {
		return nil, nil, fmt.Errorf("read the earlier location of the log: %w", err)
	}
	st := c.machine.State()
	c.installation, c.incarnation = st.Installation(), st.Incarnation()
	switch {
	case c.installation == "":
		var id [4]byte
		_, _ = rand.Read(id[:]) // never fails
		c.installation, c.incarnation = hex.EncodeToString(id[:]), 1
		// Before the event: otherwise a crash would look like a copy.
		if err := c.store.PutMeta(ctx, placeKey, place); err != nil {
			return nil, nil, fmt.Errorf("store the location of the log: %w", err)
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

// ours returns the list without the machines of other installations and incarnations, which it stores for Foreign.
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

// Foreign returns the machines of other installations, or of other incarnations of this one, from the newest
// inventories.
func (c *Control) Foreign() []engine.Instance {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var others []engine.Instance
	for _, s := range c.sources {
		others = append(others, s.others...)
	}
	return others
}
