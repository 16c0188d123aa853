// Package spec holds what the user asks for: the job file, its validation and
// its messages.
package spec

import (
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// Job is a job file. The zero value of a field means that the file does not say.
//
// The tags are the one description of the fields: json is the name in the file
// and in the log, doc what it means, eg an example, default what holds where the
// file does not say, later why this release keeps the field and does not use
// it, also another name that is read, enum the words that are allowed, zero:"ok"
// that zero may be written. Messages, schema and reference are made from them.
type Job struct {
	Name    string            `json:"name,omitempty" doc:"What the job is called: small letters, digits and dashes, at most 40. The file's folder gives the name where the file does not." eg:"llama-ft"`
	Kind    string            `json:"kind,omitempty" enum:"experiment,production,interactive,inference,data" default:"experiment" doc:"What the job is for." later:"every kind is scheduled alike"`
	Command string            `json:"command,omitempty" doc:"The program, for sh -c. A list is run without a shell." eg:"exec python3 train.py --steps $STEPS"`
	Args    []string          `json:"args,omitempty" doc:"The program and its arguments without a shell, instead of command." eg:"[python3, train.py]"`
	Setup   string            `json:"setup,omitempty" doc:"Shell commands that run on each machine before the program; where they fail the program is not started." eg:"pip install -r requirements.txt"`
	Workdir string            `json:"workdir,omitempty" doc:"Folder that is copied to the machine, relative to the job file. The job file's own unless set. .scrimpignore leaves files out." eg:"src" default:"."`
	Env     map[string]string `json:"env,omitempty" doc:"Environment of the program. It is kept in the log as it stands: a password belongs under secrets." eg:"{STEPS: \"2000\"}"`
	Secrets []string          `json:"secrets,omitempty" doc:"Names of environment variables whose values are taken from the shell that submits. The values are never in the log." eg:"[HF_TOKEN]"`
	Data    []Data            `json:"data,omitempty" doc:"Inputs, for planning transfers." later:"transfers are not planned"`
	Outputs []string          `json:"outputs,omitempty" doc:"Folders below the work folder that are kept after the machine is gone, also after a failure." eg:"[out]"`

	Resources Resources  `json:"resources,omitzero" doc:"What a machine must have."`
	AnyOf     []Variant  `json:"any_of,omitempty" doc:"Alternatives: other resources with other arguments, such as a smaller machine with mixed precision."`
	Ladder    []Rung     `json:"ladder,omitempty" doc:"What is tried first, and what next, when nothing is to be had or it fails too often. Where the deadline leaves no slack, any of them."`
	Nodes     int        `json:"nodes,omitempty" doc:"Machines that start together." eg:"4" default:"1" later:"the job runs on one machine"`
	MaxPrice  money.Rate `json:"max_price,omitempty" doc:"Highest price of a machine's hour." eg:"$2.50"`

	Model      Model      `json:"model,omitzero" doc:"Shape of the model, for estimates." later:"it is for plan --catalog, check and estimates; a run is not scheduled by it"`
	Work       Work       `json:"work,omitzero" doc:"How much there is to do, where it is known. Without steps or time the deadline can only be guarded, not planned."`
	Metric     Metric     `json:"metric,omitzero" doc:"What the run is judged by. Where it is not a finite number the run is stopped as diverged."`
	Checkpoint Checkpoint `json:"checkpoint,omitzero" doc:"Where the program saves and what is kept. Without a folder every attempt begins again from nothing."`
	Progress   Progress   `json:"progress,omitzero" doc:"How an unmodified program shows its progress. One value is the pattern."`

	Priority string   `json:"priority,omitempty" enum:"critical,normal,low" default:"normal" doc:"Critical jobs go first and never run on what can be taken away; low ones go last."`
	Deadline Deadline `json:"deadline,omitzero" doc:"When it must be done, market time: a time with its zone, or a span from the submission on." eg:"in 6h"`
	Window   string   `json:"window,omitempty" doc:"Hours of the day in which it may run, UTC unless an offset follows." eg:"22:00-06:00 +02:00" later:"the job runs at any hour"`
	Budget   Budget   `json:"budget,omitzero" doc:"The most it may use; what is reached first stops it, with a checkpoint. One value is dollars."`
	First    string   `json:"first,omitempty" enum:"budget,deadline" default:"budget" doc:"Which of the two is kept where both cannot be."`
	Promise  float64  `json:"promise,omitempty" doc:"Share of such jobs that must be in time, between 0 and 1; 99% is read as 0.99." eg:"0.99" default:"0.99"`
	Retry    Retry    `json:"retry,omitzero" doc:"Which failures of the program are tried again. Interruptions always are, and do not count."`
	Signal   string   `json:"signal,omitempty" doc:"Sent to the program's process group to ask for a save and an end: TERM, INT, HUP, USR1 or USR2. @90s is how long before the machine goes it is sent, wall time; at once without it." eg:"USR1@90s" default:"TERM"`
	Grace    Duration `json:"grace,omitempty" doc:"Between the signal and the kill, wall time." eg:"90s" default:"20s"`
	Idle     Duration `json:"idle,omitempty" doc:"Stop when the machine does nothing for so long, wall time. Never unless set." eg:"15m"`
	Notify   string   `json:"notify,omitempty" doc:"Webhook: URL that gets a POST with id, job, state and why when the job is over, again until it is taken; the id stays. $NAME of secrets is filled in, so that a token need not stand here." eg:"https://example.org/hook"`
	Compat   string   `json:"compat,omitempty" enum:"skypilot,dstack,sagemaker,slurm" doc:"Set the variables of that system too." later:"only scrimp's own variables are set"`

	Team         string            `json:"team,omitempty" doc:"Whose cost it is." eg:"vision"`
	Project      string            `json:"project,omitempty" doc:"Whose cost it is." eg:"captioning"`
	Environment  string            `json:"environment,omitempty" doc:"Whose cost it is." eg:"research"`
	ModelVersion string            `json:"model_version,omitempty" doc:"Whose cost it is." eg:"v3"`
	Tags         map[string]string `json:"tags,omitempty" doc:"On every resource and posting." eg:"{ticket: \"42\"}"`
}

// Data is an input.
type Data struct {
	Path   string     `json:"path,omitempty" doc:"Path or URL." eg:"s3://bucket/corpus" also:"url"`
	Size   size.Bytes `json:"size,omitempty" doc:"How much it is." eg:"120GiB"`
	Region string     `json:"region,omitempty" doc:"Where it lies." eg:"us-east-1"`
}

// Resources are what a machine must have.
type Resources struct {
	CPUs        Range    `json:"cpus,omitzero" doc:"Processors: 4, 4+ or 4..16. This release takes the cheapest machine that has at least the lower number." eg:"2..8"`
	Memory      Sizes    `json:"memory,omitzero" doc:"Memory with its unit: 8GiB, 8GiB+ or 8..64GiB. This release takes the cheapest machine that has at least the lower size." eg:"8GiB+"`
	Disk        Sizes    `json:"disk,omitzero" doc:"Disk with its unit: 100GiB, 100GiB+ or 100..500GiB." eg:"100GiB+" later:"machines are not chosen by their disk"`
	Accelerator string   `json:"accelerator,omitempty" doc:"Kind and count: H100, H100:8, H100:2+ or H100:1..8." eg:"H100:1..8" later:"a market that sells processors only cannot heed it"`
	Zones       []string `json:"zones,omitempty" doc:"Zones or regions it may run in. All unless set." eg:"[us-a, us-b]" also:"regions"`
	Capacity    []string `json:"capacity,omitempty" enum:"spot,on-demand,reserved,any" doc:"Kinds of capacity it may use. All unless set; any is all." eg:"[spot, on-demand]"`
}

// Variant is an alternative way to run the job.
type Variant struct {
	Name       string            `json:"name,omitempty" doc:"Of the alternative; each has another." eg:"small-bf16"`
	Resources  Resources         `json:"resources,omitzero" doc:"Instead of the job's."`
	Env        map[string]string `json:"env,omitempty" doc:"Besides the job's." eg:"{PRECISION: bf16}"`
	Args       []string          `json:"args,omitempty" doc:"Added to the job's arguments." eg:"[--bf16]"`
	Throughput float64           `json:"throughput,omitempty" doc:"Work per second against the job's own resources; 1.6x is read as 1.6." eg:"1.6x" default:"1"`
}

// Rung is a step of the ladder of what to fall back to.
type Rung struct {
	Capacity string     `json:"capacity,omitempty" enum:"spot,on-demand,reserved,any" doc:"Kind of capacity." eg:"spot"`
	Zones    []string   `json:"zones,omitempty" doc:"Zones or regions." eg:"[us-a]" also:"regions"`
	Use      string     `json:"use,omitempty" doc:"Name of an alternative of any_of; the job's own resources unless set." eg:"small-bf16"`
	MaxPrice money.Rate `json:"max_price,omitempty" doc:"Highest price of a machine's hour on this rung." eg:"$3.00"`
	For      Duration   `json:"for,omitempty" doc:"How long to try before the next rung, market time; and how long this one rests after its failures (30m unless set)." eg:"30m"`
	Failures int        `json:"failures,omitempty" doc:"Losses and refusals here until the job leaves this rung alone for a while and tries the next." eg:"3"`
}

// Model is the shape of what is trained, or a file that says it.
type Model struct {
	Config     string  `json:"config,omitempty" doc:"A config.json in the work folder, in Hugging Face's form." eg:"config.json"`
	Parameters float64 `json:"parameters,omitempty" doc:"How many weights; K, M, B and T are read as thousand to trillion." eg:"7B"`
	Layers     int     `json:"layers,omitempty" doc:"How many." eg:"32"`
	Hidden     int     `json:"hidden,omitempty" doc:"Width." eg:"4096"`
	Shape      string  `json:"shape,omitempty" doc:"The shape in a line, as scrimp estimate --model takes it. Made from config at the submission where that is a file, so that the run can be compared with later ones." eg:"cnn gmacs=4.1 activations=11.1 params=25.6M"`
	Sequence   int64   `json:"sequence,omitempty" doc:"Tokens a sample; 2048 of a transformer unless set." eg:"4096"`
	Batch      int64   `json:"batch,omitempty" doc:"Samples that an accelerator takes in at a time; what fits unless set." eg:"4"`
	Precision  string  `json:"precision,omitempty" enum:"fp32,tf32,fp16,bf16,fp8,fp4" doc:"Format of the matrix products; bf16 unless this or the program says another." eg:"fp16"`
	Tuning     string  `json:"tuning,omitempty" enum:"full,lora,qlora" doc:"Which weights are trained: all of them unless set, or small matrices beside weights that are frozen in 16 (lora) or 4 bits (qlora)."`
}

// Work is how much there is to do.
type Work struct {
	Steps   int64    `json:"steps,omitempty" doc:"Optimiser steps; K, M, B and T are read as thousand to trillion." eg:"6000"`
	Epochs  float64  `json:"epochs,omitempty" doc:"Passes over the data." eg:"3" later:"planning goes by steps and time"`
	Samples int64    `json:"samples,omitempty" doc:"Training samples." eg:"1.2M" later:"planning goes by steps and time"`
	Tokens  int64    `json:"tokens,omitempty" doc:"Training tokens." eg:"2B" later:"planning goes by steps and time"`
	Time    Duration `json:"time,omitempty" doc:"Expected time of an uninterrupted run on a machine of speed 1, market time." eg:"10h"`
}

// Metric is what the run is judged by.
type Metric struct {
	Name     string   `json:"name,omitempty" doc:"As the program reports it." eg:"val_loss"`
	Goal     string   `json:"goal,omitempty" enum:"minimize,maximize" default:"minimize" doc:"Which way is better."`
	Target   *float64 `json:"target,omitempty" zero:"ok" doc:"Reached is a success, and the rest of the money comes back." eg:"1.85"`
	Patience int64    `json:"patience,omitempty" doc:"Steps without improvement that end the run as a plateau." eg:"500"`
	MinDelta float64  `json:"min_delta,omitempty" zero:"ok" doc:"The least change that counts as improvement." eg:"0.001" default:"0"`
}

// Checkpoint is where the program saves and what is kept.
type Checkpoint struct {
	Dir      string `json:"dir,omitempty" doc:"Folder the program saves to, below the work folder or absolute. The program finds it in SCRIMP_CHECKPOINT_DIR too." eg:"checkpoints"`
	Interval string `json:"interval,omitempty" doc:"How often to save, wall time; auto follows what a save costs and how often machines are taken." eg:"10m" default:"auto"`
	Keep     int    `json:"keep,omitempty" doc:"Newest versions that are kept." eg:"3" default:"3" also:"last"`
	Best     bool   `json:"best,omitempty" doc:"Keep the best by the metric too." eg:"true" default:"false"`
	EveryNth int    `json:"every_nth,omitempty" doc:"Keep every Nth version too." eg:"10"`
	Store    string `json:"store,omitempty" doc:"Where they are kept: file:///… or s3://…. The server's data folder unless set." eg:"s3://bucket?region=us-east-1"`
	// What a move to another region takes besides a restart.
	MoveTime Duration      `json:"move_time,omitempty" doc:"What taking the newest one to another region adds to a restart, market time. Zones of several regions are weighed with it." eg:"90s"`
	MoveCost *money.Amount `json:"move_cost,omitempty" doc:"What that costs: weighed against a cheaper region, and counted by simulate." eg:"$1.00"`
}

// Progress is how an unmodified program shows its progress.
type Progress struct {
	Pattern string `json:"pattern,omitempty" doc:"Regular expression (RE2) that is searched in each line of output. The groups step, total and epoch have a meaning; any other named group is a metric." eg:"'step (?P<step>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+)'"`
	Saved   string `json:"saved,omitempty" doc:"Regular expression of the line that says a save is complete; the group step is optional." eg:"'saved step (?P<step>\\d+)'"`
	File    string `json:"file,omitempty" doc:"File of JSON lines such as {\"step\":12,\"loss\":2.3}, below the work folder." eg:"log/metrics.jsonl"`
}

// Budget is the most a job may use.
type Budget struct {
	Dollars   *money.Amount `json:"dollars,omitempty" doc:"In all, over every attempt." eg:"$30.00"`
	GPUHours  float64       `json:"gpu_hours,omitempty" doc:"Hours times accelerators, in all." eg:"64"`
	WallClock Duration      `json:"wall_clock,omitempty" doc:"From the first machine on, market time." eg:"12h"`
}

// Retry says which failures are tried again.
type Retry struct {
	Max   int   `json:"max,omitempty" doc:"How often at most." eg:"3" default:"10" also:"max_attempts"`
	Codes []int `json:"codes,omitempty" doc:"Exit statuses that are tried again, 1 to 255. 75 always is; 137 (killed, most often for memory) only where it is listed." eg:"[1, 17]" also:"recover_on_exit_codes"`
}
