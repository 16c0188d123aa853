package step

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// Outcome is the result of one step. The shell writes its facts and postings with the event in one transaction, and
// then carries out the actions in order.
type Outcome struct {
	Facts    []state.Fact
	Actions  []Action
	Postings []ledger.Posting
	Wake     time.Time // when the next Tick is due; zero: none
	// Sample is set if the event is only an observation, which need not be kept forever. Nothing is set if it need
	// not be kept at all and has no sequence number.
	Sample, Nothing bool
	// Decided counts the decisions made, including those that changed nothing.
	Decided int
	// Moved counts the groups of a round that were applied, Stale those that were dropped.
	Moved, Stale int
}

// Begin starts a step with its event.
func (c *Context) Begin(e state.Event) {
	c.event, c.outcome = e, Outcome{}
	c.Event, c.Out = &c.event, &c.outcome
	c.State.Begin(c.Event)
}

// End returns the outcome of the step and ends it.
func (c *Context) End() Outcome {
	c.Event, c.Out = nil, nil
	return c.outcome
}

// Fact records a decision and the action that it calls for.
func (c *Context) Fact(f state.Fact) {
	c.State.Apply(c.Event, f)
	c.Out.Facts = append(c.Out.Facts, f)
	if a := c.wanted(f); a != nil {
		c.Out.Actions = append(c.Out.Actions, a)
	}
}

// Now is the time of the last event.
func (c *Context) Now() time.Time { return c.State.Now() }

// Config is the configuration in force.
func (c *Context) Config() *state.Config { return c.State.Config() }

// Rules returns the limits and required tags in force; none if nobody has set any.
func (c *Context) Rules() budget.Rules {
	if r := c.State.Rules(); r != nil {
		return *r
	}
	return budget.Rules{}
}
