//go:build !linux

package program

// cgroup is a control group, which only Linux has.
type cgroup struct{}

func newCgroup() *cgroup { return nil }

func (c *cgroup) kill() error    { return nil }
func (c *cgroup) members() []int { return nil }
func (c *cgroup) remove()        {}
func (c *cgroup) path() string   { return "" }
