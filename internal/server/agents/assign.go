package agents

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/control/recent"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/terms"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// assign builds the assignment for the agent of a rank of the attempt.
func (d *Service) assign(ctx context.Context, job core.Job, a core.Attempt, node int) (api.Assignment, error) {
	j, err := d.fileOf(ctx, &job)
	if err != nil {
		return api.Assignment{}, err
	}
	clock := d.Control.Clock()
	env := d.wandbEnv(job.ID())
	maps.Copy(env, j.Env)
	maps.Copy(env, parallelismEnv(j.Model))
	command, args := d.addParameters(env, &job, j.Command, slices.Clone(j.Args))
	for i, v := range j.AnyOf {
		if a.Variant() != "" && terms.Variant(j, i) == a.Variant() {
			if len(args) > 0 {
				args = append(args, v.Args...)
			} else {
				command += shellQuote(v.Args)
			}
			maps.Copy(env, v.Env)
		}
	}
	if env[wandbRun] == "" { // the user switched it off
		delete(env, wandbRun)
		if env[wandbResume] == "allow" {
			delete(env, wandbResume)
		}
	}
	if j.Session == "shell" && j.Signal == "" {
		j.Signal = "HUP" // interactive shells ignore TERM
	}
	signal, lead := signalOf(j.Signal)
	as := api.Assignment{
		Job: job.ID(), Name: j.Name, Attempt: a.ID(), Epoch: a.Epoch(),
		AttemptToken: d.Gate.Tickets.For(auth.AttemptTicket, api.Rank(a.ID(), node)),
		Setup:        j.Setup, Command: command, Args: args, Workdir: api.ServerWork, Env: env,
		Outputs: j.Outputs, OutputsURL: api.ServerStore, OutputsPrefix: artifacts.OwnKeys(job.ID()),
		Signal: signal, SignalLead: lead, Grace: terms.Grace(j),
		Progress: api.Progressing{Pattern: j.Progress.Pattern, Saved: j.Progress.Saved, File: j.Progress.File},
		Total:    j.Work.Steps, Epochs: j.Work.Epochs, Anew: job.Anew(),
		Metric: j.Metric.Name, GPUs: requestsGPUs(&j, a.Variant()),
		Session: j.Session, Idle: time.Duration(j.Idle),
		Retryable: j.Retry.Codes, Report: 500 * time.Millisecond, Silence: 5 * time.Minute, Speed: clock.Speed,
	}
	as.Data = inputsOf(&j, &job, &a, node)
	d.values(&as, &j, a.Provider(), &job)
	d.join(&as, &a, node)
	if p := a.Portion(); p != nil {
		as.Part = &api.Part{CPUs: p.CPUs, Memory: p.Memory, Devices: slices.Clone(p.Devices)}
	}
	if !job.Terms().Deadline.IsZero() {
		as.Deadline = clock.ToWall(job.Terms().Deadline)
	}
	if j.Checkpoint.Dir != "" {
		as.Checkpoint = d.checkpoints(j, job.ID())
		as.Checkpoint.Seeded = job.Source() != nil
		lender, _ := d.Lender(j.Checkpoint.Store, job.ID())
		as.Checkpoint.Lent = lender != nil
		as.WorkLent = lender != nil && !d.Here(a.Provider()) && // on the server's own host a bucket is a detour
			job.Terms().Group == "" // members of a group share one folder
	}
	return as, nil
}

// mostFiles is the total size of the job files that are kept for the next rank of a gang, in bytes.
const mostFiles = 4 << 20

// File names a version of a job's file: that of an event.
type File struct {
	Job   string
	Event uint64
}

// NewFiles returns a cache of job files.
func NewFiles() *recent.Cache[File, spec.Job] { return recent.New[File, spec.Job](mostFiles) }

// fileOf returns the file of a job. It is shared: its lists and maps may not change.
func (d *Service) fileOf(ctx context.Context, job *core.Job) (spec.Job, error) {
	return d.Files.Get(File{job.ID(), job.SpecEvent()}, func() (spec.Job, int, error) {
		raw, _, err := d.Control.Spec(ctx, job.ID())
		if err != nil {
			return spec.Job{}, 0, err
		}
		j, err := spec.Decode(raw)
		if err != nil {
			d.Errors.Error("cannot read the job file", "job", job.ID(), "error", err)
		}
		return j, len(raw), nil
	})
}

// The variables with which Weights & Biases continues a run.
const (
	wandbRun    = "WANDB_RUN_ID"
	wandbResume = "WANDB_RESUME"
)

// wandbEnv returns the variables that keep a job in one run at Weights & Biases across interruptions. A project there
// can hold jobs of the same name from several people and data folders, so the run ID includes a part of the
// installation's ID.
func (d *Service) wandbEnv(job string) map[string]string {
	installation := ""
	d.Control.ReadUncommitted(func(m *core.Machine) { installation = m.State().Installation() })
	return map[string]string{wandbRun: job + "-" + installation[:min(8, len(installation))], wandbResume: "allow"}
}

// requestsGPUs reports whether the variant of the job that runs requests GPUs.
func requestsGPUs(j *spec.Job, variant string) bool {
	kind, _ := j.Resources.GPUs()
	for i, v := range j.AnyOf {
		if variant != "" && terms.Variant(*j, i) == variant && v.Resources.Accelerator != "" {
			kind, _ = v.Resources.GPUs()
		}
	}
	return kind != ""
}

// parallelismEnv returns the variables that pass the parallelism settings of the job file to the program.
func parallelismEnv(m spec.Model) map[string]string {
	env := map[string]string{}
	for name, value := range map[string]string{"SHARDING": m.Sharding, "TENSOR_PARALLEL": strconv.Itoa(m.Tensor),
		"PIPELINE_PARALLEL": strconv.Itoa(m.Pipeline), "ACTIVATION_CHECKPOINTING": m.Checkpointing} {
		if value != "" && value != "0" {
			env["SCRIMP_"+name] = value
		}
	}
	return env
}

// inputsOf returns the inputs that the agent of a rank brings, with the price of reading them on its machine.
func inputsOf(j *spec.Job, job *core.Job, a *core.Attempt, node int) (list []api.Input) {
	for _, x := range j.Data {
		if x.Name == "" {
			continue
		}
		in := api.Input{Name: x.Name, Path: x.Path, Region: x.Region, Stream: x.Stream, Variable: spec.DataVariable(x.Name)}
		if k := a.Rank(node); k != nil {
			if fare, ok := job.Terms().Need.Fare(x.Path, k.Machine().Provider, k.Machine().Region); ok {
				in.Gigabyte = &fare
			}
		}
		list = append(list, in)
	}
	return list
}

// checkpoints returns the settings for the job's checkpoints: where they go, and how often the program saves.
func (d *Service) checkpoints(j spec.Job, id string) api.Checkpoints {
	interval := time.Duration(0)
	d.Control.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(id); ok {
			interval = m.Interval(j)
		}
	})
	return api.Checkpoints{
		Dir: j.Checkpoint.Dir, URL: cmp.Or(j.Checkpoint.Store, api.ServerStore), Prefix: artifacts.OwnKeys(id),
		Interval: d.Control.Clock().Shrink(interval), KeepLast: cmp.Or(j.Checkpoint.Keep, terms.Standard.Checkpoint.Keep),
		KeepBest: j.Checkpoint.Best, KeepNth: j.Checkpoint.EveryNth, Metric: j.Metric.Name, Goal: j.Metric.Goal,
		AllRanks: j.Checkpoint.AllRanks(),
	}
}

// signalOf splits a signal setting such as USR1@90s.
func signalOf(text string) (name string, lead time.Duration) {
	name, span, ok := strings.Cut(strings.TrimPrefix(text, "SIG"), "@")
	if ok {
		lead, _ = time.ParseDuration(span) // validated at submission
	}
	if name == "" {
		name = "TERM"
	}
	return name, lead
}

// shellQuote returns args quoted for a shell, each preceded by a space.
func shellQuote(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" '" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}

// values adds the secrets and shell variables that the vault keeps for the job. Variables of the submitter's shell
// reach only machines that share the submitter's files.
func (d *Service) values(as *api.Assignment, j *spec.Job, engine string, of *core.Job) {
	entry := ""
	d.Control.Read(func(m *core.Machine) { entry = m.State().Secrets(of) })
	v, err := d.Vault.Current(as.Job, entry)
	if err != nil {
		d.Errors.Error("cannot read the secrets", "job", as.Job, "error", err)
	}
	if as.Secrets = v.Secrets; d.Here(engine) {
		as.Shell = v.Shell
	} else {
		as.Withheld = slices.Clone(j.Inherit)
	}
}

// addParameters passes the parameters of a trial to its program, as flags and in the environment, and the index to a
// member of an array.
func (d *Service) addParameters(env map[string]string, job *core.Job, cmd string, args []string) (string, []string) {
	d.addIndex(env, job)
	var spec *study.Spec
	var trial groups.Trial
	d.Control.Read(func(m *core.Machine) {
		if j, ok := m.Job(job.ID()); ok {
			if g, t := m.State().StudyOf(j); g != nil {
				spec, trial = g.Terms.Study, *t
			}
		}
	})
	if spec == nil {
		return cmd, args
	}
	values := spec.Values(spec.Texts(spec.Pool(), trial.Config), trial.Promoted)
	maps.Copy(env, values.Env())
	maps.Copy(env, spec.Standin(trial.Promoted))
	return values.Command(cmd, args)
}

// addIndex sets the variables with the index of an array's member, under scrimp's names and Slurm's.
func (d *Service) addIndex(env map[string]string, job *core.Job) {
	name := job.Terms().Group
	d.Control.Read(func(m *core.Machine) {
		g := m.State().Group(name)
		if g != nil && g.Terms.Kind == groups.Array {
			maps.Copy(env, g.Terms.Array.Env(name, job.Terms().Index))
		}
	})
}
