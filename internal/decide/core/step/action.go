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

// Action is something to be done outside. Key names it: the same history always
// gives the same keys, so an action repeated after a crash is recognised by
// whoever carries it out and not done twice. Actions follow from the state (what is
// wanted and not acknowledged): a step returns what has come to be wanted, a restart all.
type Action interface {
	Key() string
	Kind() string
}

// What the core asks for.
type (
	// Launch asks for the machines of an allocation, whose name is the key. Answer:
	// LaunchDone for each machine, LaunchPending, LaunchRefused or LaunchExpired.
	Launch struct {
		Job        string         `json:"job"`
		Allocation string         `json:"allocation"`
		Provider   string         `json:"provider"` // of the offer: whose machines are asked for
		Offer      market.OfferID `json:"offer"`
		Nodes      int            `json:"nodes"`
		MaxRate    money.Rate     `json:"max_price,omitempty"`
		Image      string         `json:"image,omitempty"` // that the machines are to run; "": the engine's own
	}
	// Cancel gives up a launch that is not answered. Answer: LaunchCancelled, or LaunchDone
	// where it was granted all the same.
	Cancel struct {
		Allocation string `json:"allocation"`
		Provider   string `json:"provider"`
		Why        string `json:"why"`
	}
	// Terminate gives an instance back. Answer: InstanceEnded.
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
	// Probe asks whether the offer can be had now, before anything is given up for
	// it. Answer: MarketSeen with its quote, or none where the provider cannot say.
	Probe struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer"`
		Count int            `json:"count"` // of the job's probes
	}
	// BuildTable asks for a table that decisions lack, which are taken without it until
	// it comes. Answer: Adopt with the table, and TableReady.
	BuildTable struct {
		Request plan.TableRequest `json:"request"`
	}
	// RunRound asks for a round over what is reserved, as it stands when it is begun
	// (RoundInputs), at the earliest after the event Base. Answer: RoundProposed.
	RunRound struct {
		Base uint64 `json:"base"`
	}
	// Propose asks the planner of a group what it does next, as it stands when that begins (GroupSnapshot), at the
	// earliest after the event Base. Answer: Proposed.
	Propose struct {
		Group string `json:"group"`
		Base  uint64 `json:"base"`
	}
	// Notify tells whoever the job names. It has no answer.
	Notify struct {
		Job   string       `json:"job"`
		State state.Status `json:"state"`
		Why   string       `json:"why"`
		Life  int          `json:"life,omitempty"` // how often the job was over and taken up again before
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

// Told is the name of what is told: the job's, with a number from its second life on.
func (a Notify) Told() string { return ToldOf(a.Job, a.Life) }

// ToldOf is that of a job in one of its lives, from 0. No job has ~ in its name.
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

// wanted is what a fact makes us want done; nil: nothing.
func (c *Context) wanted(f state.Fact) Action {
	switch f := f.(type) {
	case state.AllocationRequested:
		a := c.State.Job(f.Job).Asked()
		if f.Instance != "" || a.Rents() == 0 {
			return nil // it is there
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

// NotifyOf tells how the job stands.
func NotifyOf(j *state.Job) Notify {
	return Notify{Job: j.ID(), State: j.State(), Why: j.Why(), Life: j.Reopened()}
}

// Pending returns what was asked for and is not answered yet. After a restart
// the shell does it again: every key makes that harmless. Machines of an earlier
// incarnation are left alone, and nothing is asked for, until somebody decides.
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
