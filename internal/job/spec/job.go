// Package spec defines the job file, its validation and its messages.
package spec

import (
	"cmp"
	"encoding/json"
	"reflect"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Job is a job file. A zero field is unset.
//
// The tags and meanings are the only description of the fields: json is the name in the file and in the log, eg an
// example, default the value of an unset field, also another accepted name, enum the allowed words, zero:"ok" allows
// zero or an empty text, as the kind of number, which has bounds (quantity.Named), and most a lower bound than the
// kind's. Messages, schema and reference are generated from them.
type Job struct {
	Name    string   `json:"name,omitempty" eg:"llama-ft"`
	Kind    string   `json:"kind,omitempty" enum:"experiment,production,interactive,inference,data" default:"experiment"`
	Session string   `json:"session,omitempty" enum:"shell,notebook" eg:"shell"`
	Command string   `json:"command,omitempty" eg:"exec python3 train.py --steps $STEPS"`
	Args    []string `json:"args,omitempty" eg:"[python3, train.py]" zero:"ok"`
	Setup   string   `json:"setup,omitempty" eg:"pip install -r requirements.txt"`
	Workdir string   `json:"workdir,omitempty" eg:"src" default:"."`
	Image   string   `json:"image,omitempty" eg:"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"`

	Env     map[string]string `json:"env,omitempty" eg:"{STEPS: \"2000\"}" zero:"ok"`
	Secrets []string          `json:"secrets,omitempty" eg:"[HF_TOKEN]"`
	Inherit []string          `json:"inherit,omitempty" eg:"[HF_HOME]"`
	Data    []Data            `json:"data,omitempty"`
	Outputs []string          `json:"outputs,omitempty" eg:"[out]"`

	Resources Resources  `json:"resources,omitzero"`
	AnyOf     []Variant  `json:"any_of,omitempty"`
	Ladder    []Rung     `json:"ladder,omitempty"`
	Nodes     Range      `json:"nodes,omitzero" eg:"4" default:"1"`
	MaxPrice  money.Rate `json:"max_price,omitempty" eg:"$2.50"`

	Model      Model      `json:"model,omitzero"`
	Work       Work       `json:"work,omitzero"`
	Metric     Metric     `json:"metric,omitzero"`
	Checkpoint Checkpoint `json:"checkpoint,omitzero"`
	Progress   Progress   `json:"progress,omitzero"`

	Priority string `json:"priority,omitempty" enum:"critical,normal,low" default:"normal"`
	// Preemptible is nil unless the file sets it: critical jobs may then preempt the job.
	Preemptible *bool    `json:"preemptible,omitempty" eg:"false" default:"true"`
	Deadline    Deadline `json:"deadline,omitzero" eg:"in 6h"`
	Window      string   `json:"window,omitempty" eg:"22:00-06:00 +02:00"`
	Budget      Budget   `json:"budget,omitzero"`
	First       string   `json:"first,omitempty" enum:"budget,deadline" default:"budget"`
	Promise     float64  `json:"promise,omitempty" eg:"0.99" default:"0.99" as:"fraction"`
	Retry       Retry    `json:"retry,omitzero"`
	Signal      string   `json:"signal,omitempty" eg:"USR1@90s" default:"TERM"`
	Grace       Duration `json:"grace,omitempty" eg:"90s" default:"20s"`
	Idle        Duration `json:"idle,omitempty" eg:"15m"`
	Notify      Notify   `json:"notify,omitzero" eg:"https://example.org/hook"`
	Compat      string   `json:"compat,omitempty" enum:"skypilot,dstack,sagemaker,slurm"`

	Team         string            `json:"team,omitempty" eg:"vision"`
	Project      string            `json:"project,omitempty" eg:"captioning"`
	Environment  string            `json:"environment,omitempty" eg:"research"`
	ModelVersion string            `json:"model_version,omitempty" eg:"v3"`
	Tags         map[string]string `json:"tags,omitempty" eg:"{ticket: \"42\"}" zero:"ok"`
}

// Data is an input.
type Data struct {
	Name   string     `json:"name,omitempty" eg:"corpus"`
	Path   string     `json:"path,omitempty" eg:"s3://bucket/corpus" also:"url"`
	Size   size.Bytes `json:"size,omitempty" eg:"120GiB"`
	Region string     `json:"region,omitempty" eg:"us-east-1"`
	Stream bool       `json:"stream,omitempty" eg:"true"`
}

// MarshalJSON writes the form that a job file is read in: a size has its unit.
func (d Data) MarshalJSON() ([]byte, error) {
	v := struct {
		Name   string `json:"name,omitempty"`
		Path   string `json:"path,omitempty"`
		Size   string `json:"size,omitempty"`
		Region string `json:"region,omitempty"`
		Stream bool   `json:"stream,omitempty"`
	}{Name: d.Name, Path: d.Path, Region: d.Region, Stream: d.Stream}
	if d.Size != 0 {
		v.Size = d.Size.Exact()
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads what MarshalJSON writes, and the number of bytes that earlier releases wrote.
func (d *Data) UnmarshalJSON(text []byte) error {
	v := struct {
		Name   string          `json:"name"`
		Path   string          `json:"path"`
		Size   json.RawMessage `json:"size"`
		Region string          `json:"region"`
		Stream bool            `json:"stream"`
	}{}
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	*d = Data{Name: v.Name, Path: v.Path, Region: v.Region, Stream: v.Stream}
	if len(v.Size) == 0 || v.Size[0] != '"' {
		return json.Unmarshal([]byte(cmp.Or(string(v.Size), "0")), &d.Size)
	}
	var written string
	if err := json.Unmarshal(v.Size, &written); err != nil {
		return err
	}
	b, err := size.Parse(written)
	d.Size = b
	return err
}

// AnyCapacity stands for every kind in a list of capacities.
const AnyCapacity = "any"

// AnyAccelerator stands for a GPU of any kind.
const AnyAccelerator = "any"

// Resources holds the requirements on a machine.
type Resources struct {
	CPUs        Range    `json:"cpus,omitzero" eg:"2..8"`
	Memory      Sizes    `json:"memory,omitzero" eg:"8GiB+"`
	Disk        Sizes    `json:"disk,omitzero" eg:"100GiB+"`
	Accelerator string   `json:"accelerator,omitempty" eg:"H100:1..8"`
	Zones       []string `json:"zones,omitempty" eg:"[us-a, us-b]" also:"regions"`
	Capacity    []string `json:"capacity,omitempty" enum:"spot,on-demand,reserved,any" eg:"[spot, on-demand]"`
}

// Variant is an alternative way to run the job.
type Variant struct {
	Name       string            `json:"name,omitempty" eg:"small-bf16"`
	Engine     string            `json:"engine,omitempty" eg:"slurm/gpu"`
	Image      string            `json:"image,omitempty" eg:"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime"`
	Resources  Resources         `json:"resources,omitzero"`
	Env        map[string]string `json:"env,omitempty" eg:"{PRECISION: bf16}" zero:"ok"`
	Args       []string          `json:"args,omitempty" eg:"[--bf16]" zero:"ok"`
	Throughput float64           `json:"throughput,omitempty" eg:"1.6x" default:"1" as:"factor"`
}

// Place reports whether the alternative only names an engine for the job's own resources.
func (v Variant) Place() bool {
	engine := v.Engine
	v.Engine = ""
	return engine != "" && reflect.ValueOf(v).IsZero()
}

// Places returns the engines or parts of engines to which any_of restricts the job's own resources, and alternatives
// without an engine. None means all engines.
func (j Job) Places() (list []string) {
	for _, v := range j.AnyOf {
		if v.Place() {
			list = append(list, v.Engine)
		}
	}
	return list
}

// Rung is a step of the fallback ladder.
type Rung struct {
	Capacity string     `json:"capacity,omitempty" enum:"spot,on-demand,reserved,any" eg:"spot"`
	Zones    []string   `json:"zones,omitempty" eg:"[us-a]" also:"regions"`
	Use      string     `json:"use,omitempty" eg:"small-bf16"`
	MaxPrice money.Rate `json:"max_price,omitempty" eg:"$3.00"`
	For      Duration   `json:"for,omitempty" eg:"30m"`
	Failures int        `json:"failures,omitempty" eg:"3" as:"count"`
}

// Model is the shape of the trained model, or a file that defines it.
type Model struct {
	Config     string  `json:"config,omitempty" eg:"config.json"`
	Parameters float64 `json:"parameters,omitempty" eg:"7B" as:"items" most:"1e14"`
	Layers     int     `json:"layers,omitempty" eg:"32" as:"count" most:"1e4"`
	Hidden     int     `json:"hidden,omitempty" eg:"4096" as:"count" most:"1e6"`
	Shape      string  `json:"shape,omitempty" eg:"cnn gmacs=4.1 activations=11.1 params=25.6M"`
	Sequence   int64   `json:"sequence,omitempty" eg:"4096" as:"items" most:"1e8"`
	Batch      int64   `json:"batch,omitempty" eg:"4" as:"items" most:"1e7"`
	Precision  string  `json:"precision,omitempty" enum:"fp32,tf32,fp16,bf16,fp8,fp4" eg:"fp16"`
	Tuning     string  `json:"tuning,omitempty" enum:"full,lora,qlora"`
	Features   int64   `json:"features,omitempty" eg:"28" as:"items" most:"1e7"`

	Sharding      string `json:"sharding,omitempty" enum:"none,zero1,zero2,zero3,fsdp" eg:"fsdp"`
	Tensor        int    `json:"tensor_parallel,omitempty" eg:"8" as:"count" most:"1e4"`
	Pipeline      int    `json:"pipeline_parallel,omitempty" eg:"2" as:"count" most:"1e4"`
	Checkpointing string `json:"activation_checkpointing,omitempty" enum:"none,selective,full" eg:"full"`
}

// Work is the amount of work.
type Work struct {
	Steps   int64    `json:"steps,omitempty" eg:"6000" as:"steps"`
	Epochs  float64  `json:"epochs,omitempty" eg:"3" as:"epochs"`
	Samples int64    `json:"samples,omitempty" eg:"1.2M" as:"items"`
	Tokens  int64    `json:"tokens,omitempty" eg:"2B" as:"items"`
	Time    Duration `json:"time,omitempty" eg:"10h"`
	// Parallel is unset if measured runs may say it.
	Parallel *float64 `json:"parallel,omitempty" eg:"0.9" as:"fraction"`
}

// Metric is the metric that decides the run.
type Metric struct {
	Name     string   `json:"name,omitempty" eg:"val_loss"`
	Goal     string   `json:"goal,omitempty" enum:"minimize,maximize" default:"minimize"`
	Target   *float64 `json:"target,omitempty" zero:"ok" eg:"1.85" as:"metric"`
	Patience int64    `json:"patience,omitempty" eg:"500" as:"steps"`
	MinDelta float64  `json:"min_delta,omitempty" zero:"ok" eg:"0.001" default:"0" as:"metric"`
}

// Checkpoint describes where the program saves and what is kept.
type Checkpoint struct {
	Dir      string `json:"dir,omitempty" eg:"checkpoints"`
	Interval string `json:"interval,omitempty" eg:"10m" default:"auto"`
	Keep     int    `json:"keep,omitempty" eg:"3" default:"3" also:"last" as:"count"`
	Best     bool   `json:"best,omitempty" eg:"true" default:"false"`
	EveryNth int    `json:"every_nth,omitempty" eg:"10" as:"count"`
	Store    string `json:"store,omitempty" eg:"s3://bucket?region=us-east-1"`
	Ranks    string `json:"ranks,omitempty" enum:"first,all" eg:"all" default:"first"`
	// Given is set if the folder has contents before the first attempt.
	Given bool `json:"given,omitempty" eg:"true" default:"false"`
	// MoveTime and MoveCost are the cost of a move to another region besides a restart.
	MoveTime Duration      `json:"move_time,omitempty" eg:"90s"`
	MoveCost *money.Amount `json:"move_cost,omitempty" eg:"$1.00"`
}

// AllRanks reports whether each machine's folder is a part of the checkpoint.
func (c Checkpoint) AllRanks() bool { return c.Ranks == "all" }

// Progress describes how an unmodified program shows its progress.
type Progress struct {
	Pattern string `json:"pattern,omitempty" eg:"'step (?P<step>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+)'"`
	Saved   string `json:"saved,omitempty" eg:"'saved step (?P<step>\\d+)'"`
	File    string `json:"file,omitempty" eg:"log/metrics.jsonl"`
}

// Budget holds the limits of a job.
type Budget struct {
	Dollars   *money.Amount `json:"dollars,omitempty" eg:"$30.00"`
	GPUHours  float64       `json:"gpu_hours,omitempty" eg:"64" as:"gpu-hours"`
	WallClock Duration      `json:"wall_clock,omitempty" eg:"12h"`
}

// Retry selects the failures to retry.
type Retry struct {
	Max   int   `json:"max,omitempty" eg:"3" default:"10" also:"max_attempts" as:"count"`
	Codes []int `json:"codes,omitempty" eg:"[1, 17]" also:"recover_on_exit_codes" as:"exit"`
}

// MostNodes returns the largest number of machines that the job may have at once.
func (j *Job) MostNodes() int { return max(1, j.Nodes.Max) }

// FewestNodes returns the smallest number of machines that the job needs.
func (j *Job) FewestNodes() int { return max(1, j.Nodes.Min) }
