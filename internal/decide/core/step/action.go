package step

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Action is work for the shell. Key identifies it: the same history always gives the same keys, so whoever carries
// actions out recognizes one that is repeated after a crash and does not do it twice. Actions follow from the state
// (what is wanted and not acknowledged): a step returns the new ones, a restart all of them.
type Action interface {
	Key() string
	Kind() string
}

// Actions of the core.
type (
	// Launch requests the machines of an allocation, whose ID is the key. Answer: LaunchDone for each machine,
	// LaunchPending, LaunchRefused or LaunchExpired.
	Launch struct {
		Job        string         `json:"job"`
		Allocation string         `json:"allocation"`
		Provider   string         `json:"provider"` // provider of the offer
		Offer      market.OfferID `json:"offer"`
		Nodes      int            `json:"nodes"`
		MaxRate    money.Rate     `json:"max_price,omitempty"`
		// image that the machines must run; empty: the engine's default
		Image string `json:"image,omitempty"`
	}
	// Cancel gives up an unanswered launch. Answer: LaunchCancelled, or LaunchDone if it was granted all the same.
	Cancel struct {
		Allocation string `json:"allocation"`
		Provider   string `json:"provider"`
		Why        string `json:"why"`
	}
	// Terminate ends an instance. Answer: InstanceEnded.
	Terminate struct {
		Instance string `json:"instance"`
		Provider string `json:"provider"`
		Attempt  string `json:"attempt,omitempty"`
		Why      string `json:"why"`
	}
	// Drain asks an attempt's agent to save and end. Answer: AttemptEnded.
	Drain struct {
		Attempt string        `json:"attempt"`
		Why     string        `json:"why"`
		Grace   time.Duration `json:"grace_ns"` // market time
	}
	// Probe finds out whether the offer is available now, before anything is given up for it. Answer: MarketSeen
	// with its quote, or none if the provider cannot tell.
	Probe struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer"`
		Count int            `json:"count"` // number of the job's probes
	}
	// BuildTable requests a table that decisions lack; they are made without it until it comes. Answer: Adopt with
	// the table, and TableReady.
	BuildTable struct {
		Request plan.TableRequest `json:"request"`
	}
	// RunRound requests a round over reserved offers, on the state when it starts (RoundInputs), which is after
	// event Base at the earliest. Answer: RoundProposed.
	RunRound struct {
		Base uint64 `json:"base"`
	}
	// Propose asks the planner of a group for its next moves, on the state when it starts (GroupSnapshot), which is
	// after event Base at the earliest. Answer: Proposed.
	Propose struct {
		Group string `json:"group"`
		Base  uint64 `json:"base"`
	}
	// Notify notifies the recipients that the job names. It has no answer.
	Notify struct {
		Job   string       `json:"job"`
		State state.Status `json:"state"`
		Why   string       `json:"why"`
		Life  int          `json:"life,omitempty"` // number of times the job was reopened before
	}
)

// Key of each action, derived from the history.
func (a Launch) Key() string { return a.Allocation }

func (a Cancel) Key() string { return "cancel/" + a.Allocation }

func (a Terminate) Key() string { return "terminate/" + a.Instance }

func (a Drain) Key() string { return "drain/" + a.Attempt }

func (a Probe) Key() string { return fmt.Sprintf("look/%s/%d", a.Job, a.Count) }

func (a BuildTable) Key() string { return "table/" + a.Request.Key() }

func (a RunRound) Key() string { return fmt.Sprintf("round/%d", a.Base) }

func (a Propose) Key() string { return fmt.Sprintf("propose/%s/%d", a.Group, a.Base) }

func (a Notify) Key() string { return "notify/" + a.Told() + "/" + string(a.State) }

// Told returns the name used in the notification: the job ID, with a number once the job was reopened.
func (a Notify) Told() string { return ToldOf(a.Job, a.Life) }

// ToldOf returns the name for a job that was reopened life times. No job ID contains ~.
func ToldOf(job string, life int) string {
	if life == 0 {
		return job
	}
	return fmt.Sprintf("%s~%d", job, life)
}

// Kinds of actions.
func (Launch) Kind() string { return "launch" }

func (Cancel) Kind() string { return "cancel" }

func (Terminate) Kind() string { return "terminate" }

func (Drain) Kind() string { return "drain" }

func (Probe) Kind() string { return "look" }

func (BuildTable) Kind() string { return "build_table" }

func (RunRound) Kind() string { return "run_round" }

func (Propose) Kind() string { return "propose" }

func (Notify) Kind() string { return "notify" }

// wanted returns the action that a fact calls for, or nil.
func (c *Context) wanted(f state.Fact) Action {
	switch f := f.(type) {
	case state.AllocationRequested:
		a := c.State.Job(f.Job).Asked()
		if f.Instance != "" || a.Rents() == 0 {
			return nil // the machine exists
		}
		return c.launchOf(a)
	case state.AllocationCancelling:
		return cancelOf(c.State.Allocation(f.Allocation), f.Why)
	case state.InstanceReleased:
		return c.terminateOf(c.State.Instance(f.Instance))
	case state.DrainRequested:
		return c.drainOf(c.State.Attempt(f.Attempt))
	case state.ProbeAsked:
		return Probe{Job: f.Job, Offer: f.Offer, Count: c.State.Job(f.Job).Probes()}
	case state.GroupFinished:
		return Notify{Job: f.Group, State: state.Status(state.GroupOver), Why: c.State.Group(f.Group).Why}
	case state.JobHeld:
		return c.notifyOf(c.State.Job(f.Job))
	case state.JobOver:
		return c.notifyOf(c.State.Job(f.Job))
	}
	return nil
}

func (c *Context) launchOf(a *state.Allocation) Action {
	return Launch{Job: a.Job(), Allocation: a.ID(), Provider: a.Machine().Provider, Offer: a.Offer(), Nodes: a.Rents(),
		MaxRate: a.Most(), Image: a.Machine().Image}
}

func cancelOf(a *state.Allocation, why string) Action {
	return Cancel{Allocation: a.ID(), Provider: a.Machine().Provider, Why: why}
}

func (c *Context) terminateOf(i *state.Instance) Action {
	t := Terminate{Instance: i.ID(), Provider: i.Machine().Provider, Why: i.Release()}
	if a := c.State.Seated(i); a != nil {
		t.Attempt = a.ID()
	}
	return t
}

func (c *Context) drainOf(a *state.Attempt) Action {
	return Drain{Attempt: a.ID(), Why: a.DrainWhy(), Grace: c.State.Job(a.Job()).Terms().Grace}
}

func (c *Context) notifyOf(j *state.Job) Action { return NotifyOf(j) }

// NotifyOf returns the notification about the job's state.
func NotifyOf(j *state.Job) Notify {
	return Notify{Job: j.ID(), State: j.State(), Why: j.Why(), Life: j.Reopened()}
}

// Pending returns the actions without an answer. After a restart the shell repeats them; their keys make that
// harmless. While machines of an earlier incarnation wait for a decision, Pending returns nothing and scrimp leaves
// them alone.
func (c *Context) Pending() []Action {
	var list []Action
	if c.State.Undecided() {
		return nil
	}
	for _, j := range c.working() {
		for _, a := range j.Cancelling() {
			list = append(list, cancelOf(a, "asked_before"))
		}
		for _, a := range j.Open() {
			if a.Live() && a.Draining() && a.Task() == state.TaskRunning && !a.Releasing() {
				list = append(list, c.drainOf(a))
			}
		}
		if a := j.Asked(); a != nil && a.Rents() > 0 {
			list = append(list, c.launchOf(a))
		}
	}
	for _, i := range c.State.Instances() {
		if i.Live() && i.Release() != "" {
			list = append(list, c.terminateOf(i))
		}
	}
	return list
}

// working lists the jobs with an allocation or an attempt that is not over, in the order of their submission.
func (c *Context) working() []*state.Job {
	asked := map[*state.Job]bool{}
	for a := range c.State.Allocations() {
		asked[c.State.Job(a.Job())] = true
	}
	for a := range c.State.Attempts() {
		asked[c.State.Job(a.Job())] = true
	}
	jobs := make([]*state.Job, 0, len(asked))
	for j := range asked {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *state.Job) int { return cmp.Compare(a.Order(), b.Order()) })
	return jobs
}
