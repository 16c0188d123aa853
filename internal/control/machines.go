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

// registerWait is how long a registration waits for the answer to its machine's launch,
// since a machine can be quicker than that.
const registerWait = 10 * time.Second

// Register takes the key of a machine's agent: ErrTaken where another key is known,
// ErrFenced where the machine gets none.
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
		case !known || proposed: // the core did not take it: too late, or the machine is given back
			return ErrFenced
		default:
			if err := c.Propose(ctx, c.event(c.Now(), b)); err != nil {
				return err
			}
			proposed = true // of two at once one has it
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("register %s: its launch is not answered yet", b.Instance)
		}
	}
}

// AgentOf is the agent that has registered from a machine that may still cost something.
func (c *Control) AgentOf(instance string) (agent state.Agent, known bool) {
	c.Read(func(m *core.Machine) {
		if i := m.State().Instance(instance); i != nil && i.Live() && i.Agent() != nil {
			agent, known = *i.Agent(), true
		}
	})
	return agent, known
}

// Task is an attempt with its job, for the machine that has a rank of it.
type Task struct {
	Job     core.Job
	Attempt core.Attempt
	Node    int
}

// Pull returns the tasks of a machine that are not among those it runs, and marks them as
// taken by it. Clean says that its agent shows that nothing of an earlier task is left there.
// Pull waits until there is a task, until the machine is to be switched off, or until ctx is
// done, which is no error.
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
			_ = wait.For(ctx, c.pullEvery()) // thousands of machines do not all look at each event
		case <-ctx.Done():
			return nil, false, nil
		}
	}
}

// goneFrom tells of the tasks whose seats on a machine were taken from them, and which do not
// run there any more.
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

// tasksOf is what a machine is to begin, and whether it is to be switched off.
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

// hearAll notes that the agent of these tasks was heard of.
func (c *Control) hearAll(tasks []Task) {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	for _, t := range tasks {
		c.agents.hear(t.Attempt.ID(), t.Node, time.Now())
	}
}

// pullEvery is how long a pull that was woken waits for more to happen.
func (c *Control) pullEvery() time.Duration {
	c.agents.mu.Lock()
	defer c.agents.mu.Unlock()
	return 10*time.Millisecond + time.Duration(c.agents.live)*time.Millisecond
}
