package control

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/wait"
)

// registerWait is how long a registration waits for the answer to its machine's launch: a machine can be faster than
// the answer.
const registerWait = 10 * time.Second

// Register stores the key of a machine's agent. It returns ErrTaken if another key is known, and ErrFenced if the
// machine may have none.
func (c *Control) Register(ctx context.Context, b core.MachineRegistered) error {
	ctx, cancel := context.WithTimeout(ctx, registerWait)
	defer cancel()
	for proposed := false; ; {
		changed := c.Changed()
		var known, asked bool
		var agent *state.Agent
		if !c.Read(func(m *core.Machine) {
			if i := m.State().Instance(b.Instance); i != nil && i.Allocation() == b.Allocation {
				known, agent = true, i.Agent()
			}
			_, asked = m.Allocation(b.Allocation)
		}) {
			return ErrStopping
		}
		switch {
		case agent != nil && agent.Key == b.Key:
			return nil
		case agent != nil:
			return ErrTaken
		case !known && asked: // its launch is not answered yet
		case !known || proposed: // the core refused it: too late, or the machine is being terminated
			return ErrFenced
		default:
			if err := c.Propose(ctx, c.event(c.Now(), b)); err != nil {
				return err
			}
			proposed = true // only one of two concurrent registrations succeeds
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("register %s: its launch is not answered yet", b.Instance)
		}
	}
}

// AgentOf returns the registered agent of a machine that may still cost something.
func (c *Control) AgentOf(instance string) (agent state.Agent, known bool) {
	c.Read(func(m *core.Machine) {
		if i := m.State().Instance(instance); i != nil && i.Live() && i.Agent() != nil {
			agent, known = *i.Agent(), true
		}
	})
	return agent, known
}

// Task is an attempt and its job, for a machine that runs one of its ranks.
type Task struct {
	Job     core.Job
	Attempt core.Attempt
	Node    int
}

// Pull returns the tasks of a machine that are not among those it runs, and marks them as claimed by it. clean means
// that the agent has shown that nothing of an earlier task is left. Pull waits until there is a task, until the
// machine should be switched off, or until ctx is done, which is no error.
func (c *Control) Pull(ctx context.Context, instance string, running []string, clean bool) (tasks []Task, off bool,
	err error,
) {
	for {
		changed := c.Changed()
		var by string
		var news bool
		if !c.Read(func(m *core.Machine) {
			tasks, by, off = tasksOf(m, instance, running)
			news = clean && m.Cleans(instance)
		}) {
			return nil, false, ErrStopping
		}
		if off {
			return nil, true, nil
		}
		claims := c.goneFrom(instance, running)
		if news {
			claims = append(claims, c.event(c.Now(), core.MachineCleaned{Instance: instance}))
		}
		for _, t := range tasks {
			if claimedOf(&t.Attempt, t.Node).IsZero() {
				claims = append(claims, c.event(c.Now(), core.AgentClaimed{Attempt: t.Attempt.ID(), Node: t.Node, By: by}))
			}
		}
		switch {
		case len(claims) > 0:
			if err := c.Propose(ctx, claims...); err != nil {
				return nil, false, err
			}
			continue
		case len(tasks) > 0:
			c.hearAll(tasks)
			return tasks, false, nil
		}
		select {
		case <-changed:
			_ = wait.For(ctx, c.pullEvery()) // so that thousands of machines do not all check at each event
		case <-ctx.Done():
			return nil, false, nil
		}
	}
}

// goneFrom returns the ends of the tasks that lost their seats on a machine and no longer run there.
func (c *Control) goneFrom(instance string, running []string) (gone []core.Event) {
	c.Read(func(m *core.Machine) {
		for _, k := range m.State().Leaving() {
			id := k.Attempt().ID()
			done := k.Attempt().Nodes() > 1 && k.Phase() == core.Ended
			if k.Instance() == instance && !slices.Contains(running, id) && !done {
				gone = append(gone, c.event(c.Now(), core.TaskGone{Attempt: id, Node: k.Rank()}))
			}
		}
	})
	return gone
}

// tasksOf returns the tasks that a machine should start, and whether it should be switched off.
func tasksOf(m *core.Machine, instance string, running []string) (tasks []Task, by string, off bool) {
	i := m.State().Instance(instance)
	if i == nil || i.Agent() == nil || !m.Stays(i) {
		return nil, "", true
	}
	by = fmt.Sprintf("%x", sha256.Sum256([]byte(i.Agent().Key)))
	for _, k := range m.Tasks(i) {
		a := k.Attempt()
		if slices.Contains(running, a.ID()) {
			continue
		}
		if j, ok := m.Job(a.Job()); ok {
			copied := j.Copy()
			for _, other := range copied.Attempts() {
				if other.ID() == a.ID() {
					node, _ := nodeOn(other, instance)
					tasks = append(tasks, Task{Job: *copied, Attempt: *other, Node: node})
				}
			}
		}
	}
	return tasks, by, false
}

// hearAll marks the agents of the tasks as heard.
func (c *Control) hearAll(tasks []Task) {
	for _, t := range tasks {
		c.agents.Hear(t.Attempt.ID(), t.Node, time.Now())
	}
}

// pullEvery is how long a woken pull waits for more to happen.
func (c *Control) pullEvery() time.Duration {
	return 10*time.Millisecond + time.Duration(c.agents.Live())*time.Millisecond
}
