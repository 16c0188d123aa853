package client

import (
	"time"

	"scrimp/money"
)

// History is what the server saw of its market, and the jobs that it finished
// there: what simulations of other policies begin from.
type History struct {
	Opened time.Time `json:"opened"` // market time of the trace's beginning
	Trace  Trace     `json:"trace"`
	Jobs   []PastJob `json:"jobs"`
	Others int       `json:"others,omitempty"` // that are over and did not succeed
}

// Trace is a market over time: for each offer its prices and when it can be
// had, in market time since the market opened.
type Trace struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Speed    float64        `json:"speed"`               // market seconds a wall second
	Repeat   time.Duration  `json:"repeat_ns,omitempty"` // the trace begins again after this long; 0: its last state stays
	Lines    []TraceLine    `json:"lines"`
}

// TraceLine is one offer in a trace.
type TraceLine struct {
	Offer Offer   `json:"offer"`
	Price []Price `json:"price"`
	// Available are the spans in which it can be had; nil is always, and none is
	// never. When a span of spot ends, its machines are interrupted.
	Available []Span `json:"available,omitzero"`
	// Reserved is what of it was paid beforehand. It does not repeat with the trace.
	Reserved Term `json:"reserved,omitzero"`
}

// Price is what an hour costs from At on.
type Price struct {
	At   time.Duration `json:"at_ns"`
	Rate money.Rate    `json:"rate"`
}

// Span is a time in which an offer can be had, with the notice given before it
// ends, in wall time; 0 is none.
type Span struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Notice time.Duration `json:"notice_ns"`
}

// Term is a reservation in a trace: its times are counted from the market's opening.
type Term struct {
	Count int           `json:"count"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Paid  money.Amount  `json:"paid"`
	Team  string        `json:"team,omitempty"`
}

// PastJob is a job that is over, as a simulation needs it.
type PastJob struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Terms     Terms         `json:"terms"` // Steps and Work as they turned out
	Submitted time.Time     `json:"submitted"`
	Restart   time.Duration `json:"restart_ns"` // measured; 0: unknown
	Save      time.Duration `json:"save_ns"`    // measured; 0: unknown
	Cost      money.Amount  `json:"cost"`
	Known     bool          `json:"known"` // whether its work is: it was measured
}

// Fare is the price of moving a job's checkpoint from one region to another.
type Fare struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Cost money.Amount `json:"cost"`
}

// Terms is what the core needs to know of a job. It is made from the job file
// once, at submission, so that the core depends on no file format.
type Terms struct {
	Name    string `json:"name"`
	Owner   Owner  `json:"owner"`
	JobKind string `json:"job_kind,omitempty"` // experiment, production, interactive, inference, data
	Variant string `json:"variant,omitempty"`
	// Group is the group of which it is a member, Index its index in an array, and Parent the group whose budget it
	// takes from, which is the same where that has one.
	Group  string `json:"group,omitempty"`
	Index  int    `json:"index,omitempty"`
	Parent string `json:"parent,omitempty"`
	Stage  string `json:"stage,omitempty"` // that the job is of its pipeline, where Index is the stage's position
	// After is what must be over before it may have a machine.
	After    []Dependency `json:"after,omitempty"`
	Priority int          `json:"priority,omitempty"` // 2 critical, 1 normal, 0 low
	// Nodes is how many machines it runs on at once, at most; LeastNodes how many at least, where
	// that is less. Its work and speed are those on all of them. 0: one.
	Nodes      int  `json:"nodes,omitempty"`
	LeastNodes int  `json:"least_nodes,omitempty"`
	Need       Need `json:"need"`

	Deadline      time.Time      `json:"deadline,omitzero"`
	Promise       float64        `json:"promise,omitempty"` // share of such jobs that are in time
	Budget        money.Amount   `json:"budget,omitzero"`
	HasBudget     bool           `json:"has_budget,omitempty"`
	Currency      money.Currency `json:"currency"`
	GPUHours      float64        `json:"gpu_hours,omitempty"`
	WallClock     time.Duration  `json:"wall_clock_ns,omitempty"`
	DeadlineFirst bool           `json:"deadline_first,omitempty"`

	Steps   int64         `json:"steps,omitempty"`   // 0: unknown
	Work    time.Duration `json:"work_ns,omitempty"` // on a machine of speed 1; 0: unknown
	Restart time.Duration `json:"restart_ns"`        // expected until measured
	// Transfer is what taking the checkpoint to another region adds to a restart,
	// and Carry what it costs; 0 where the job cannot leave its region.
	Transfer time.Duration `json:"transfer_ns,omitempty"`
	Carry    money.Amount  `json:"carry,omitzero"`
	Egress   []Fare        `json:"egress,omitempty"`      // routes between regions that cost something else
	Grace    time.Duration `json:"grace_ns"`              // given to a drain
	Interval time.Duration `json:"interval_ns,omitempty"` // between checkpoints; 0: auto
	Saves    bool          `json:"saves,omitempty"`       // whether the job has a checkpoint folder

	Metric     Metric        `json:"metric,omitzero"`
	IdleLimit  time.Duration `json:"idle_limit_ns,omitempty"`
	MaxRetries int           `json:"max_retries,omitempty"`
	RetryCodes []int         `json:"retry_codes,omitempty"`
	Notify     bool          `json:"notify,omitempty"`
}

// Owner says whose cost a posting is. Empty fields mean that the level does not apply.
type Owner struct {
	Tenant       string            `json:"tenant"`
	Team         string            `json:"team,omitempty"`
	Project      string            `json:"project,omitempty"`
	Environment  string            `json:"environment,omitempty"`
	ModelVersion string            `json:"model_version,omitempty"`
	Group        string            `json:"group,omitempty"` // of which the job is a member
	Part         string            `json:"part,omitempty"`  // which member: the index in an array
	Job          string            `json:"job,omitempty"`
	Attempt      string            `json:"attempt,omitempty"`
	Task         string            `json:"task,omitempty"`
	Instance     string            `json:"instance,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
}

// Need is what the job asks of a machine. Zero fields ask for nothing.
type Need struct {
	Requirements
	Machines int        `json:"machines,omitempty"`  // at once, at the least; 0: one
	MaxRate  money.Rate `json:"max_price,omitempty"` // 0: no limit
	Critical bool       `json:"critical,omitempty"`  // never on spot
	// Variants are other ways to do the same work, which ask for other machines.
	Variants []Variant `json:"variants,omitempty"`
	// Ladder, where there is one, says what is tried first, and what later.
	Ladder []Rung `json:"ladder,omitempty"`
}

// Requirements is what one way of doing the work asks of a machine.
type Requirements struct {
	CPUs         int      `json:"cpus,omitempty"`
	Memory       int64    `json:"memory_bytes,omitempty"`
	Accelerator  string   `json:"accelerator,omitempty"` // "": none needed
	Accelerators int      `json:"accelerators,omitempty"`
	Zones        []string `json:"zones,omitempty"` // zones or regions
	// Engines are those that the job is held to, or zones of them: lab, slurm/gpu; none: all.
	Engines  []string   `json:"engines,omitempty"`
	Capacity []Capacity `json:"capacity,omitempty"`
	// Image is the container image that the work is done in; "": the machine's own.
	Image string `json:"image,omitempty"`
	// The most that the job may have of what it asks for; 0: no limit.
	MaxCPUs         int   `json:"max_cpus,omitempty"`
	MaxMemory       int64 `json:"max_memory_bytes,omitempty"`
	MaxAccelerators int   `json:"max_accelerators,omitempty"`
	// Footprint is what the memory of a machine, or of its accelerators, must hold.
	Footprint Footprint `json:"footprint,omitzero"`
}

// Footprint is the memory that the model of the work takes by its estimate, where the job leaves open which
// machine it runs on. Zero: nobody knows, or the job says itself what it needs.
type Footprint struct {
	// Machine is what a machine without accelerators must have, in bytes; 0: nothing is known.
	Machine int64 `json:"machine_bytes,omitempty"`
	// Cards say what each accelerator must have, by how many of them the work has on a machine: rising in
	// number, falling in memory.
	Cards []Card `json:"cards,omitempty"`
}

// Card is what each of so many accelerators of a machine must have.
type Card struct {
	Accelerators int   `json:"accelerators"` // of a machine, and more
	Memory       int64 `json:"memory_bytes"` // as sold
}

// Variant is one of them.
type Variant struct {
	Name string `json:"name"`
	Requirements
	// Throughput is work a second against the job's own way, on the machine of which
	// the offer states its speed; 0: 1.
	Throughput float64 `json:"throughput,omitempty"`
}

// Rung is a step of a ladder. It allows what it names; empty fields allow all.
type Rung struct {
	Capacity []Capacity `json:"capacity,omitempty"`
	Zones    []string   `json:"zones,omitempty"`
	Use      string     `json:"use,omitempty"` // a variant; "": the job's own way
	MaxRate  money.Rate `json:"max_price,omitempty"`
	// For is how long nothing may be had here before the next rung is tried too; and
	// how long this one rests after Failures.
	For time.Duration `json:"for_ns,omitempty"`
	// Failures is how many losses and refusals here make the job leave this rung
	// alone for a while; 0: none do.
	Failures int `json:"failures,omitempty"`
}

// Metric is what the user watches.
type Metric struct {
	Name     string  `json:"name"`
	Maximize bool    `json:"maximize,omitempty"`
	Target   float64 `json:"target,omitempty"`
	HasGoal  bool    `json:"has_target,omitempty"` // whether Target is set
	Patience int64   `json:"patience,omitempty"`   // steps without improvement that end the run; 0: never
	MinDelta float64 `json:"min_delta,omitempty"`  // what counts as improvement
}
