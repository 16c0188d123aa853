package step

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// Outcome is what one step led to. The shell writes its facts and postings with the
// event in one transaction and then does the actions, in order.
type Outcome struct {
	Facts    []state.Fact
	Actions  []Action
	Postings []ledger.Posting
	Wake     time.Time // when the next Tick is due; zero: none
	// Sample: the event only teaches, and need not be kept for ever. Nothing: it need
	// not be kept at all, and has no number.
	Sample, Nothing bool
	// Decided counts the decisions that were taken, those that changed nothing with them.
	Decided int
	// Moved counts the groups of a round that happened, Stale those that were dropped.
	Moved, Stale int
}

// Begin takes the event of a new step.
func (c *Context) Begin(e state.Event) {
	c.event, c.outcome = e, Outcome{}
	c.Event, c.Out = &c.event, &c.outcome
	c.State.Begin(c.Event)
}

// End returns what the step led to.
func (c *Context) End() Outcome {
	out := c.outcome
	c.event, c.outcome = state.Event{}, Outcome{}
	c.Event, c.Out = nil, nil
	return out
}

// Fact records what was decided.
func (c *Context) Fact(f state.Fact) {
	c.State.Apply(c.Event, f)
	c.Out.Facts = append(c.Out.Facts, f)
	if a := c.wanted(f); a != nil {
		c.Out.Actions = append(c.Out.Actions, a)
	}
}

// Now is the time of the newest event.
func (c *Context) Now() time.Time { return c.State.Now() }

// Config is the configuration in force.
func (c *Context) Config() *state.Config { return c.State.Config() }

// Rules are the limits and required tags in force; none where nobody has set any.
func (c *Context) Rules() budget.Rules {
	if r := c.State.Rules(); r != nil {
		return *r
	}
	return budget.Rules{}
}
