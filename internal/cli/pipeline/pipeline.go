// Package pipeline holds the commands of pipelines: they run, schedule, draw and explain them.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	cliplan "scrimp/internal/cli/plan"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/cli/submit"
	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quiet"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/pipelinefile"
	"scrimp/internal/work/pipelinefile/document"
)

// flags holds the flags of scrimp pipeline run.
type flags struct {
	job                   jobfile.Flags
	name, budget, sample  string
	cron, zone, total     string
	runs                  int
	scheduled             bool // the pipeline runs on a schedule
	yes, detach, force    bool
	nameGiven, costsGiven bool
	sampleGiven           bool
}

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package. More are below scrimp pipeline.
func Commands(shared *command.App, more ...*cobra.Command) []*cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{Use: "pipeline", Short: "Run stages that begin after each other, and none twice",
		GroupID: command.GroupRun,
		Long: "Runs pipelines: stages with inputs and outputs, each a job, with one budget (docs/pipelines.md). A stage " +
			"whose inputs, parameters and program are those of an earlier run is not run again: its outputs are taken." +
			command.PlainExit}
	cmd.AddCommand(a.runCmd(), a.scheduleCmd(), a.graphCmd(),
		a.showCmd("status", "Show how the stages of a pipeline stand", func(_ context.Context, _ *command.Client,
			g api.Group) error {
			return groups.Print(a.App, g)
		}),
		a.showCmd("cost", "Show what each stage has cost, and what would lower it", func(ctx context.Context,
			c *command.Client, g api.Group) error {
			return groups.StageCosts(ctx, a.App, c, g.ID)
		}),
		a.whyCmd())
	cmd.AddCommand(more...)
	return []*cobra.Command{cmd}
}

func (a *app) runCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "run [pipeline.yaml]", Short: "Run a pipeline: only the stages that something has changed for",
		Long: `Runs the stages of a pipeline file, each after those whose outputs it reads. Without an argument it
takes pipeline.yaml, or else dvc.yaml, of this folder. The work folder is sent once. A stage whose
inputs, parameters and program are those of an earlier run of the project is not run again: its outputs are
taken, and what it had cost is shown as saved. A line on stderr says when a stage begins and ends; the cost of
each stage goes to stdout. At a terminal it shows the stages and asks first; -y or --json does not ask. Ctrl-C
detaches; the pipeline goes on.

Exit status: 0 all stages are done, reused or skipped by a gate, or it is detached, 1 error, 3 a stage failed or
the pipeline was stopped.`,
		Example: "  scrimp pipeline run\n  scrimp pipeline run -y dvc.yaml --budget '$25'\n" +
			"  scrimp pipeline why retrain train",
		Args: command.Takes("[pipeline.yaml]"), ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.nameGiven, f.costsGiven = cmd.Flag("name").Changed, cmd.Flag("budget").Changed
			f.sampleGiven = cmd.Flag("sample").Changed
			return a.run(cmd.Context(), args, f)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "submit and return (default: show the progress)")
	cmd.Flags().StringVar(&f.sample, "sample", "", "run the stages on this `part` of the data first, as "+
		"1% or 1%,5%; none runs no sample (default: as its file says)")
	_ = cmd.RegisterFlagCompletionFunc("sample", cobra.NoFileCompletions)
	return cmd
}

// add adds the flags that scrimp pipeline run and schedule share.
func (f *flags) add(cmd *cobra.Command) {
	f.job.Add(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "call the pipeline by this `name` (default: as its file says, else as its "+
		"folder)")
	cmd.Flags().StringVar(&f.budget, "budget", "", "let all stages of one run cost at most this `amount`, as '$25.00' "+
		"(default: as its file says)")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask before money is spent (default: ask at a terminal)")
	cmd.Flags().BoolVar(&f.force, "force", false, "let long stages go on spot without proven checkpoints, and let them "+
		"wait for an accelerator that nothing for sale has, or for a price that the budget pays (default: refuse them)")
	for _, name := range []string{"name", "budget"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// fileOf returns the given file, or the default file of this folder.
func fileOf(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	for _, name := range []string{"pipeline.yaml", "dvc.yaml"} {
		if _, err := os.Stat(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("there is no pipeline.yaml and no dvc.yaml in this folder: name the file")
}

// read reads a pipeline file and the files that it names. It also returns the file's folder.
func read(file string, now time.Time) (p *pipelinefile.File, folder string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("read the pipeline file: %w", err)
	}
	if folder, err = filepath.Abs(filepath.Dir(file)); err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = root.Close() }()
	p, err = pipelinefile.Parse(file, text, now, func(name string) ([]byte, error) {
		f, err := quiet.OpenIn(root, filepath.FromSlash(name))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fs.ErrNotExist
			}
			return nil, err
		}
		defer func() { _ = f.Close() }()
		return io.ReadAll(io.LimitReader(f, document.MaxText+1))
	})
	return p, folder, err
}

// run runs a pipeline.
func (a *app) run(ctx context.Context, args []string, f flags) error {
	file, err := fileOf(args)
	if err != nil {
		return err
	}
	p, err := a.prepare(file, f) // before a server is started for it
	if err == nil {
		err = f.schedule(&p, a.Now())
	}
	if err != nil {
		return err
	}
	c, err := a.Ensure(ctx, f.job.Market)
	if err != nil {
		return err
	}
	if f.scheduled {
		if err := alone(ctx, c, p.file.Whole.Name); err != nil {
			return err
		}
	}
	v, err := c.Server(ctx)
	if err != nil {
		return err
	}
	if err := a.agreed(ctx, p, f.yes); err != nil {
		return err
	}
	if err := a.fit(ctx, c, p.file, v, f.force); err != nil {
		return err
	}
	s, err := submit.Request(ctx, a.App, c, api.Submission{AcceptUnproven: f.force, AcceptWait: f.force,
		Pipeline: &p.wire}, p.file.Whole, p.folder)
	if err != nil {
		return err
	}
	return inFile(filepath.Base(file), p.file, groups.Submit(ctx, a.App, c, s, f.detach))
}

// schedule reads the schedule of scrimp pipeline schedule. For scrimp pipeline run it notes that the file's schedule
// does not count.
func (f flags) schedule(p *prepared, now time.Time) error {
	if f.scheduled {
		return f.schedules(p, now)
	}
	if p.file.Schedule != nil {
		p.file.Notes = append(p.file.Notes, "schedule of the file is for scrimp pipeline schedule: this runs it once, now")
	}
	return nil
}

// limitsOf returns the limits of a whole pipeline that are no money.
func limitsOf(b spec.Budget) (v api.GroupLimits) {
	if b.GPUHours > 0 {
		v.GPULimit = &b.GPUHours
	}
	if b.WallClock > 0 {
		v.WallClock = new(time.Duration(b.WallClock))
	}
	return v
}

// agreed shows what a pipeline will do, and asks at a terminal before it does so.
func (a *app) agreed(ctx context.Context, p prepared, yes bool) error {
	if a.JSON {
		return nil
	}
	a.Notef("%s", group.PipelinePlan(p.file.Whole.Name, graphOf(p.file), p.file.AtOnce, *p.file.Whole.Budget.Dollars,
		limitsOf(p.file.Whole.Budget), p.file.Notes, a.Line()))
	question := "Run it? [Y/n] "
	if y := p.wire.Schedule; y != nil {
		question = "Schedule it? [Y/n] "
		a.Notef("%s", group.SchedulePlan(*y, a.Line()))
	}
	return a.Ask(ctx, question, yes)
}

// prepared is a parsed pipeline with its stages in the API's form.
type prepared struct {
	file   *pipelinefile.File
	folder string
	wire   api.Pipeline
}

// prepare reads a pipeline and applies the flags.
func (a *app) prepare(file string, f flags) (p prepared, err error) {
	if p.file, p.folder, err = read(file, a.Now()); err != nil {
		return p, err
	}
	whole := &p.file.Whole
	switch {
	case f.nameGiven && spec.Label(f.name) != f.name:
		return p, fmt.Errorf("--name %q: use small letters, digits and dashes, such as %s", f.name, spec.Label(f.name))
	case f.nameGiven:
		whole.Name = f.name
	case whole.Name == "":
		whole.Name = spec.Label(filepath.Base(p.folder))
	}
	if f.costsGiven {
		amount, err := spec.ParseBudget(f.budget)
		if err != nil {
			return p, fmt.Errorf("--budget: %w", err)
		}
		whole.Budget.Dollars = &amount
	}
	if b := whole.Budget.Dollars; b == nil || b.Sign() <= 0 {
		return p, fmt.Errorf("%s has no budget for the whole: write budget: $25 at its top, or give --budget '$25'",
			filepath.Base(file))
	}
	if err := f.samples(p.file); err != nil {
		return p, err
	}
	p.wire = api.Pipeline{AtOnce: p.file.AtOnce, Sample: sampleOf(p.file.Sample),
		Stages: make([]api.PipelineStage, 0, len(p.file.Jobs))}
	for i, s := range p.file.Spec.Stages {
		j, err := p.file.Jobs[i].WithEnv(f.job.Env)
		if err == nil {
			j, err = pastruns.Modelled(j, p.folder)
		}
		if err != nil {
			return p, fmt.Errorf("stage %s: %w", s.Name, err)
		}
		text, err := pastruns.Given(j, p.folder).Encode()
		if err != nil {
			return p, err
		}
		p.wire.Stages = append(p.wire.Stages, stageOf(s, text))
	}
	return p, nil
}

// stageOf returns a stage in the form in which it is submitted, with its job file.
func stageOf(s pipeline.Stage, job []byte) api.PipelineStage {
	x := api.PipelineStage{Name: s.Name, Job: api.Raw(job), After: s.After, Deps: s.Deps, Outs: s.Outs,
		Metrics: s.Metrics, Params: s.Params, Always: s.Always, Examples: s.Examples, Deploy: s.Deploy}
	if s.Gate != nil {
		x.Gate = new(api.PipelineGate(*s.Gate))
	}
	if s.Drift != nil {
		x.OnDrift = new(api.PipelineDrift(*s.Drift))
	}
	if s.Warm != nil {
		x.WarmStart = new(api.PipelineWarm(*s.Warm))
	}
	for _, g := range s.Gates {
		x.Gates = append(x.Gates, api.PipelineGate(g))
	}
	return x
}

// mostKinds bounds how many different machine requirements of stages are checked against the market.
const mostKinds = 30

// broke reports whether the budget of a run pays for no machine that is for sale: each run would end at once.
func broke(p planning.Plan) bool {
	return p.Take == "" && p.WaitsFor == "" && p.Why == string(plan.BudgetGone)
}

// fit refuses a pipeline if nothing on the market can ever run one of its stages, or if the budget pays for the start
// of no machine: the other stages would cost money without a result.
func (a *app) fit(ctx context.Context, c *command.Client, f *pipelinefile.File, v api.Server, force bool) error {
	seen := map[string]bool{}
	for i, s := range f.Spec.Stages {
		j := f.Jobs[i]
		if j.Budget.Dollars == nil || j.Budget.Dollars.Cmp(*f.Whole.Budget.Dollars) > 0 {
			j.Budget.Dollars = f.Whole.Budget.Dollars // a stage can spend all that one run has
		}
		kind := spec.Job{Resources: j.Resources, AnyOf: j.AnyOf, Ladder: j.Ladder, Nodes: j.Nodes, MaxPrice: j.MaxPrice,
			Model: j.Model, Image: j.Image, Grace: j.Grace, Budget: j.Budget}.Hash()
		if force || seen[kind] || len(seen) == mostKinds {
			continue
		}
		seen[kind] = true
		p, err := cliplan.Predict(ctx, a.App, c, j, v)
		if err != nil {
			return fmt.Errorf("stage %s: %w", s.Name, err)
		}
		if p.Unsold || cliplan.Never(p) {
			return fmt.Errorf("not run: stage %s: nothing on this market fits: scrimp market shows what is for sale; change "+
				"what it asks for; with --force it waits until something does", s.Name)
		}
		if broke(p) {
			return fmt.Errorf("not run: stage %s: no machine for sale starts within the budget of %s for its grace and its "+
				"minimum charge: raise budget in the file, or give --budget; with --force it waits for a lower price", s.Name,
				money.Short(*j.Budget.Dollars, money.USD))
		}
	}
	return nil
}
