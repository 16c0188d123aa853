package client

import (
	"time"

	"scrimp/money"
)

// History is what the server observed of its market, with the jobs that it finished there: the input of simulations
// of other policies.
type History struct {
	Opened time.Time `json:"opened"` // market time of the trace's start
	Trace  Trace     `json:"trace"`
	Jobs   []PastJob `json:"jobs"`
	Others int       `json:"others,omitempty"` // jobs that ended without success
}

// Trace is a market over time: the prices and availability of each offer, in market time since the market opened.
type Trace struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Speed    float64        `json:"speed"`               // market seconds per wall second
	Repeat   time.Duration  `json:"repeat_ns,omitempty"` // the trace repeats after this time; 0: its last state stays
	Lines    []TraceLine    `json:"lines"`
}

// TraceLine is an offer in a trace.
type TraceLine struct {
	Offer Offer   `json:"offer"`
	Price []Price `json:"price"`
	// Available lists the spans in which the offer is available; nil means always, and an empty list never. At the
	// end of a span of spot, its machines are interrupted.
	Available []Span `json:"available,omitzero"`
	// Reserved is the prepaid part. It does not repeat with the trace.
	Reserved Term `json:"reserved,omitzero"`
}

// Price is the price per hour from At on.
type Price struct {
	At   time.Duration `json:"at_ns"`
	Rate money.Rate    `json:"rate"`
}

// Span is a period in which an offer is available. Notice is the notice before its end, in wall time; 0: none.
type Span struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Notice time.Duration `json:"notice_ns"`
}

// Term is a reservation in a trace; its times count from the market's opening.
type Term struct {
	Count int           `json:"count"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Paid  money.Amount  `json:"paid"`
	Team  string        `json:"team,omitempty"`
}

// PastJob is a job that has ended, as a simulation needs it.
type PastJob struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Terms     Terms         `json:"terms"` // with the actual Steps and Work
	Submitted time.Time     `json:"submitted"`
	Restart   time.Duration `json:"restart_ns"` // measured; 0: unknown
	Save      time.Duration `json:"save_ns"`    // measured; 0: unknown
	Cost      money.Amount  `json:"cost"`
	Known     bool          `json:"known"` // whether its work was measured
}

// Fare is the cost of moving a job's checkpoint from one region to another.
type Fare struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Cost money.Amount `json:"cost"`
}

// Terms is what the core needs to know of a job. The server derives it from the job file once, at submission, so
// that the core depends on no file format.
type Terms struct {
	Name    string `json:"name"`
	Owner   Owner  `json:"owner"`
	JobKind string `json:"job_kind,omitempty"` // experiment, production, interactive, inference, data
	// Session is shell or notebook if the job is a session, which ends as stopped when its program exits; "": no
	// session.
	Session string `json:"session,omitempty"`
	Variant string `json:"variant,omitempty"`
	// Group is the job's group, Index its index in an array, and Parent the group whose budget it uses, which is
	// Group itself if that has a budget.
	Group  string `json:"group,omitempty"`
	Index  int    `json:"index,omitempty"`
	Parent string `json:"parent,omitempty"`
	Stage  string `json:"stage,omitempty"` // the job's stage in its pipeline; Index is then the stage's position
	// After lists what must end before the job may get a machine.
	After    []Dependency `json:"after,omitempty"`
	Priority int          `json:"priority,omitempty"` // 2 critical, 1 normal, 0 low
	// Nodes is the highest number of machines that it runs on at once, LeastNodes the lowest, if lower. Its work and
	// speed are for Nodes machines. 0: one.
	Nodes      int  `json:"nodes,omitempty"`
	LeastNodes int  `json:"least_nodes,omitempty"`
	Need       Need `json:"need"`

	Deadline      time.Time      `json:"deadline,omitzero"`
	Promise       float64        `json:"promise,omitempty"` // share of such jobs that meet the deadline
	Window        Window         `json:"window,omitzero"`   // hours of the day in which it may run; zero: always
	Budget        money.Amount   `json:"budget,omitzero"`
	HasBudget     bool           `json:"has_budget,omitempty"`
	Currency      money.Currency `json:"currency"`
	GPUHours      float64        `json:"gpu_hours,omitempty"`
	WallClock     time.Duration  `json:"wall_clock_ns,omitempty"`
	DeadlineFirst bool           `json:"deadline_first,omitempty"`

	Steps   int64         `json:"steps,omitempty"`   // 0: unknown
	Work    time.Duration `json:"work_ns,omitempty"` // on a machine of speed 1; 0: unknown
	Restart time.Duration `json:"restart_ns"`        // expected, until measured
	// Transfer is the time that a move to another region adds to a restart, and Carry its cost; 0 if the job cannot
	// leave its region.
	Transfer time.Duration `json:"transfer_ns,omitempty"`
	Carry    money.Amount  `json:"carry,omitzero"`
	// Bringing is the longest that a machine may take to bring the inputs and set up before the program starts.
	Bringing time.Duration `json:"bringing_ns,omitempty"`
	// Streams names the inputs that the program reads while they arrive.
	Streams  []string      `json:"streams,omitempty"`
	Egress   []Fare        `json:"egress,omitempty"`      // routes between regions with other costs
	Grace    time.Duration `json:"grace_ns"`              // time that a drain may take
	Interval time.Duration `json:"interval_ns,omitempty"` // between checkpoints; 0: auto
	Saves    bool          `json:"saves,omitempty"`       // whether the job has a checkpoint folder

	Metric     Metric        `json:"metric,omitzero"`
	IdleLimit  time.Duration `json:"idle_limit_ns,omitempty"`
	MaxRetries int           `json:"max_retries,omitempty"`
	RetryCodes []int         `json:"retry_codes,omitempty"`
	Notify     bool          `json:"notify,omitempty"`
	// Unpreemptible is set if no critical job may take the job's seat.
	Unpreemptible bool `json:"unpreemptible,omitempty"`
}

// Owner identifies who bears the cost of a posting. An empty field means that the level does not apply.
type Owner struct {
	Tenant       string            `json:"tenant"`
	Team         string            `json:"team,omitempty"`
	Project      string            `json:"project,omitempty"`
	Environment  string            `json:"environment,omitempty"`
	ModelVersion string            `json:"model_version,omitempty"`
	Group        string            `json:"group,omitempty"` // group of the job
	Part         string            `json:"part,omitempty"`  // member of the group: the index in an array
	Job          string            `json:"job,omitempty"`
	Attempt      string            `json:"attempt,omitempty"`
	Task         string            `json:"task,omitempty"`
	Instance     string            `json:"instance,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
}

// Need is what the job needs of a machine. Zero fields require nothing.
type Need struct {
	Requirements
	Machines int        `json:"machines,omitempty"`  // at least, at once; 0: one
	MaxRate  money.Rate `json:"max_price,omitempty"` // 0: no limit
	Critical bool       `json:"critical,omitempty"`  // never on spot
	// Parallel is the share of the work, by its time on the lower end of a range of processors or accelerators, that
	// more of them make faster; 0: nothing shows that they do.
	Parallel float64 `json:"parallel,omitempty"`
	// Variants lists other ways to do the same work, on other machines.
	Variants []Variant `json:"variants,omitempty"`
	// Ladder, if set, says what to try first and what later.
	Ladder []Rung `json:"ladder,omitempty"`
	// Reads lists the inputs whose place is known.
	Reads []Read `json:"reads,omitempty"`
}

// Read is an input that each machine of a job reads once.
type Read struct {
	Origin
	Name  string `json:"name,omitempty"` // of an input that the agent brings; "": the program reads it itself
	Path  string `json:"path,omitempty"`
	Bytes int64  `json:"bytes,omitempty"` // 0: unknown
}

// Origin is where data is stored. An empty provider and a null fare are unknown.
type Origin struct {
	Provider string      `json:"provider,omitempty"`
	Region   string      `json:"region"`
	Near     *money.Rate `json:"near,omitempty"` // of a gigabyte to other regions of the provider on the continent
	Out      *money.Rate `json:"out,omitempty"`  // of a gigabyte to anywhere else
	// Sellers lists engines that rent at the provider under another name, and Own those that name their regions.
	Sellers []string `json:"sellers,omitempty"`
	Own     []string `json:"own,omitempty"`
}

// Requirements is what one way of doing the work needs of a machine.
type Requirements struct {
	CPUs         int      `json:"cpus,omitempty"`
	Memory       int64    `json:"memory_bytes,omitempty"`
	Accelerator  string   `json:"accelerator,omitempty"` // "": none
	Accelerators int      `json:"accelerators,omitempty"`
	Zones        []string `json:"zones,omitempty"` // zones or regions
	// Engines lists the allowed engines or zones of engines, such as lab or slurm/gpu; none: all.
	Engines  []string   `json:"engines,omitempty"`
	Capacity []Capacity `json:"capacity,omitempty"`
	// Image is the container image for the work; "": the machine's own.
	Image string `json:"image,omitempty"`
	// Upper bounds for the job; 0: no limit.
	MaxCPUs         int   `json:"max_cpus,omitempty"`
	MaxMemory       int64 `json:"max_memory_bytes,omitempty"`
	MaxAccelerators int   `json:"max_accelerators,omitempty"`
	// Footprint is the least memory of a machine, or of its accelerators.
	Footprint Footprint `json:"footprint,omitzero"`
}

// Footprint is the estimated memory of the work's model, where the job leaves its machine open. Zero: unknown, or
// the job states its needs.
type Footprint struct {
	// Machine is the memory that a machine without accelerators needs, in bytes; 0: unknown.
	Machine int64 `json:"machine_bytes,omitempty"`
	// Cards lists the memory that each accelerator needs, by their number per machine: rising in number, falling in
	// memory.
	Cards []Card `json:"cards,omitempty"`
}

// Card is the memory that each of so many accelerators of a machine needs.
type Card struct {
	Accelerators int   `json:"accelerators"` // on a machine, at least
	Memory       int64 `json:"memory_bytes"` // as sold
}

// Variant is another way to do the same work.
type Variant struct {
	Name string `json:"name"`
	Requirements
	// Throughput is the work per second relative to the job's own way, on the machine for which the offer states its
	// speed; 0: 1.
	Throughput float64 `json:"throughput,omitempty"`
}

// Rung is a step of a ladder. It allows what its fields name; an empty field allows everything.
type Rung struct {
	Capacity []Capacity `json:"capacity,omitempty"`
	Zones    []string   `json:"zones,omitempty"`
	Use      string     `json:"use,omitempty"` // a variant; "": the job's own way
	MaxRate  money.Rate `json:"max_price,omitempty"`
	// For is how long nothing must be available on this rung before the next one is tried, too, and how long this
	// rung rests after Failures.
	For time.Duration `json:"for_ns,omitempty"`
	// Failures is the number of losses and refusals after which the job leaves this rung alone for a while; 0:
	// never.
	Failures int `json:"failures,omitempty"`
}

// Window is hours of the day, such as 22:00 to 06:00, in nanoseconds after midnight.
type Window struct {
	From   time.Duration `json:"from_ns"`
	Until  time.Duration `json:"until_ns"`            // before From: on the next day
	Offset time.Duration `json:"offset_ns,omitempty"` // of its clock from UTC
}

// Metric is the metric that the user watches.
type Metric struct {
	Name     string  `json:"name"`
	Maximize bool    `json:"maximize,omitempty"`
	Target   float64 `json:"target,omitempty"`
	HasGoal  bool    `json:"has_target,omitempty"` // Target is set
	Patience int64   `json:"patience,omitempty"`   // steps without improvement after which the run ends; 0: never
	MinDelta float64 `json:"min_delta,omitempty"`  // smallest change that counts as improvement
}
