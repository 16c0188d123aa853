package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	cliplan "scrimp/internal/cli/plan"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/cli/show/search"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/study"
	"scrimp/internal/work/studyfile"
)

// tuneCmd runs searches, and has the subcommands that show them.
func (a *app) tuneCmd() *cobra.Command {
	var f jobfile.Flags
	var yes, detach, force bool
	cmd := &cobra.Command{
		Use: "tune study.yaml", Short: "Search for the best hyper-parameters within a budget", GroupID: command.GroupMoney,
		Long: `Searches for the best configuration of a job within a budget. The study file has the form of a W&B sweep,
with the job and a budget (docs/tune.md). Each trial is the job with other parameters, as flags and in its
environment. The searcher pauses trials that look poor, comes back to them, and ends those that are trained in
full. At a terminal it says what it would do and asks first; -y or --json does not ask. Ctrl-C detaches; the
search goes on.

Exit status: 0 it has found something or is detached, 1 error, 3 no trial has reported a value.`,
		Example: "  scrimp tune study.yaml\n  scrimp tune plan study.yaml\n  scrimp tune best chargpt",
		Args:    command.Takes("study.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tune(cmd.Context(), args[0], f, yes, detach, force)
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before money is spent (default: ask at a terminal)")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "submit and return (default: show the progress)")
	cmd.Flags().BoolVar(&force, "force", false, "let long trials go on spot without proven checkpoints, and let them "+
		"wait for an accelerator that nothing for sale has (default: refuse them)")
	cmd.AddCommand(a.tunePlanCmd(), a.statusCmd(), a.trialsCmd())
	return cmd
}

func (a *app) tunePlanCmd() *cobra.Command {
	var f jobfile.Flags
	cmd := &cobra.Command{Use: "plan study.yaml", Short: "Show what a search would do and cost; spends nothing",
		Long: "Shows how many configurations and trials a study has, where trials are compared, the budget and the most " +
			"that can be spent, and what one full training costs by 200 simulated runs of the job. It rents nothing." +
			command.PlainExit,
		Args: command.Takes("study.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.planStudy(cmd.Context(), args[0], f)
		}}
	f.Add(cmd)
	return cmd
}

// Planner returns what shows the plan of a study file.
func Planner(shared *command.App) func(ctx context.Context, file string, f jobfile.Flags) error {
	return (&app{shared}).planStudy
}

func (a *app) planStudy(ctx context.Context, file string, f jobfile.Flags) error {
	s, err := a.readStudy(ctx, file, f)
	if err != nil {
		return err
	}
	return a.Show(s.plan, s.plan.Text(a.Place()))
}

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{Use: "status STUDY", Short: "Show how a search stands", Args: command.Takes("STUDY"),
		Long: "Show how a search stands." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, err := studyOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			r, err := c.GroupReceipt(ctx, g.ID)
			if err != nil { // the page is worth showing without its course
				r = api.GroupReceipt{}
			}
			r.Group = g
			return a.Show(g, group.Search(r, a.Place()))
		})}
}

func (a *app) trialsCmd() *cobra.Command {
	return &cobra.Command{Use: "trials STUDY", Short: "List the trials of a search, the best first",
		Args: command.Takes("STUDY"), Long: "List the trials of a search, the best first." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, err := c.Group(ctx, args[0])
			if err == nil {
				err = isStudy(g, args[0])
			} else if s, unknown := c.Search(ctx, args[0]); unknown == nil {
				return a.ownTrials(ctx, c, s)
			}
			if err != nil {
				return noSearch(args[0], err)
			}
			list, err := c.Trials(ctx, g.ID)
			if err != nil {
				return err
			}
			return command.ShowEach(a.App, list, search.Trials(list, g, a.Place()))
		})}
}

// ownTrials lists the trials of a search whose trials the user's own loop trains, the best first.
func (a *app) ownTrials(ctx context.Context, c *command.Client, s api.Search) error {
	list, err := c.SearchTrials(ctx, s.Name)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(x, y api.SearchTrial) int {
		switch {
		case x.Best == nil && y.Best == nil:
			return 0
		case x.Best == nil:
			return 1
		case y.Best == nil:
			return -1
		case s.Study.Maximize:
			return cmp.Compare(*y.Best, *x.Best)
		}
		return cmp.Compare(*x.Best, *y.Best)
	})
	for _, t := range list {
		if a.JSON {
			if err := a.Print(t); err != nil {
				return err
			}
			continue
		}
		best := "no value"
		if t.Best != nil {
			best = fmt.Sprintf("best %.5g", *t.Best)
		}
		a.Printf("trial %d  %s, trained %g, %s  %s\n", t.Number, t.State, t.At, best, t.JSON)
	}
	return nil
}

// studyOf returns the study with the given ID. Its error names the commands for a search of the user's own loop.
func studyOf(ctx context.Context, c *command.Client, id string) (api.Group, error) {
	g, err := c.Group(ctx, id)
	if err == nil {
		return g, isStudy(g, id)
	}
	if _, unknown := c.Search(ctx, id); unknown == nil {
		return g, fmt.Errorf("%s is a search of your own loop: scrimp tune best %s and scrimp tune trials %s show it", id, id,
			id)
	}
	return g, noSearch(id, err)
}

// isStudy refuses a group that is not a study.
func isStudy(g api.Group, id string) error {
	if g.Study == nil {
		return fmt.Errorf("%s is %s and no study: scrimp groups lists what there is", id, groups.Kind(g))
	}
	return nil
}

// noSearch returns the error for a name that is unknown; any other error stays.
func noSearch(id string, err error) error {
	if p, is := errors.AsType[*api.Problem](err); is && p.Code == api.JobUnknown {
		return fmt.Errorf("there is no search %.80q: scrimp groups lists studies, scrimp tune searches those of your own "+
			"loops", id)
	}
	return err
}

// prepared is a parsed study with its job in the API's form.
type prepared struct {
	client *command.Client
	job    spec.Job
	folder string
	study  api.Study
	plan   search.Plan
}

// tune runs a search.
func (a *app) tune(ctx context.Context, file string, f jobfile.Flags, yes, detach, force bool) error {
	s, err := a.readStudy(ctx, file, f)
	if err != nil {
		return err
	}
	if !a.JSON {
		a.Notef("%s", s.plan.Text(a.Line()))
	}
	if err := a.Ask(ctx, "Run it? [Y/n] ", yes); err != nil {
		return err
	}
	b, err := submit.Request(ctx, a.App, s.client, api.Submission{AcceptUnproven: force, AcceptWait: force,
		Study: &s.study}, s.job, s.folder)
	if err != nil {
		return err
	}
	return groups.Submit(ctx, a.App, s.client, b, detach)
}

// readStudy reads a study file and its job, and plans the search.
func (a *app) readStudy(ctx context.Context, file string, f jobfile.Flags) (s prepared, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("read the study file: %w", err)
	}
	read, err := studyfile.Parse(file, text)
	if err != nil {
		return s, err
	}
	path := file
	if f.Text = read.Job; read.Job == nil {
		if path = read.JobFile; !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
	}
	f.Fields = fields(read)
	j, _, _, err := jobfile.Load(spec.Run, []string{path}, -1, f, a.Now()) // before starting a server for it
	if err != nil {
		return s, err
	}
	var v api.Server
	if s.client, v, err = a.Connect(ctx, f.Market); err != nil {
		return s, err
	}
	var notes []spec.Note
	if j, s.folder, notes, err = jobfile.Load(spec.Run, []string{path}, -1, f, v.Market.Now); err != nil {
		return s, err
	}
	jobfile.Note(a.App, notes)
	if j, err = pastruns.Modelled(j, s.folder); err != nil {
		return s, err
	}
	if j.Checkpoint.Dir == "" {
		if err := withoutPauses(file, read); err != nil {
			return s, err
		}
	}
	if err := warmed(ctx, s.client, file, read); err != nil {
		return s, err
	}
	s.job, s.study = j, onWire(read)
	one := j
	one.Budget.Dollars = nil
	p, means, err := cliplan.PredictTrial(ctx, a.App, s.client, one, v, read.Parallel)
	if err != nil {
		return s, err
	}
	means.Budget = read.Budget
	if field, cause, fix := read.Study.Short(means); field != "" { // as the server does
		return s, fmt.Errorf("%s: budget.%s: %s: %s", file, field, cause, fix)
	}
	s.plan = planned(read, j, p, means)
	return s, nil
}

// withoutPauses takes a searcher that pauses no trial, because the study's job has no folder of checkpoints. It refuses
// a searcher of the user's own that pauses trials.
func withoutPauses(file string, read *studyfile.File) error {
	st := &read.Study
	if read.Free && st.Resumes() {
		st.Searcher = "asha-stop"
		read.Notes = append(read.Notes, "the job has no checkpoint.dir, so that no trial can be paused: the searcher is "+
			"asha-stop")
	}
	if st.Resumes() {
		return fmt.Errorf("%s: the searcher %s pauses trials and comes back to them, and the job has no checkpoint.dir: "+
			"name the folder of checkpoints there, or take the searcher asha-stop", file, st.Searcher)
	}
	return nil
}

// fields returns the settings of a study for its job file.
func fields(read *studyfile.File) (list []spec.Setting) {
	set := func(flag, field, text string) {
		list = append(list, spec.Setting{Flag: flag, Field: field, Text: text})
	}
	goal := "minimize"
	if read.Study.Maximize {
		goal = "maximize"
	}
	if read.Name != "" {
		set("name", "name", read.Name)
	}
	set("metric.name", "metric.name", read.Study.Metric)
	set("metric.goal", "metric.goal", goal)
	set("budget.usd", "budget.dollars", "$"+read.Budget.String())
	set("deadline", "deadline", "none") // a search has a wall clock
	if read.Trial > 0 {
		set("budget.trial_wall_clock", "budget.wall_clock", read.Trial.String())
	}
	return list
}

// onWire converts a study to the API's form.
func onWire(read *studyfile.File) api.Study {
	st := read.Study
	b := api.Study{Metric: st.Metric, Maximize: st.Maximize, Searcher: st.Searcher, Grid: st.Grid, Seed: int64(st.Seed),
		Trials: st.Trials, AtOnce: read.Parallel, WallClock: st.Wall, GPUHours: st.GPUHours, Final: st.Final,
		Plateau: (*api.StudyPlateau)(st.Plateau), Proxy: (*api.StudyProxy)(st.Proxy)}
	if st.Fidelity.Name != "" {
		b.Fidelity = new(api.StudyFidelity(st.Fidelity))
	}
	for _, p := range st.Params {
		b.Params = append(b.Params, api.StudyParam{Name: p.Name, Values: p.Values, Min: p.Min, Max: p.Max, Int: p.Int,
			Log: p.Log, Q: p.Q, Mu: p.Mu, Sigma: p.Sigma})
	}
	for _, x := range st.Past {
		past := api.StudyPast{Params: map[string]string{}}
		for d, text := range x.Params {
			past.Params[st.Params[d].Name] = text
		}
		for _, v := range x.Points {
			past.Points = append(past.Points, api.StudyPoint(v))
		}
		b.Past = append(b.Past, past)
	}
	return b
}

// another is an additional budget, in dollars, whose benefit a plan shows.
const another = 20

// planned returns what a study would do; p is the plan of one full configuration, and m what its trials need.
func planned(read *studyfile.File, j spec.Job, p planning.Plan, m study.Means) search.Plan {
	st, budget := &read.Study, read.Budget.Float()
	v := search.Plan{Name: j.Name, Metric: st.Metric, Searcher: st.Searcher, Configs: len(st.Pool()),
		Parallel: read.Parallel, BudgetS: money.Short(read.Budget, money.USD), Final: st.Final, GPUHours: st.GPUHours,
		Notes: read.Notes, Warnings: st.Warnings(study.Program{Command: j.Command, Args: j.Args, Pattern: j.Progress.Pattern,
			File: j.Progress.File}),
		Plateau: search.PlateauText((*api.StudyPlateau)(st.Plateau), st.Metric), Past: len(st.Past)}
	if st.Proxy != nil {
		v.Proxy = search.ProxyText((*api.StudyProxy)(st.Proxy), (*api.StudyFidelity)(&st.Fidelity))
	}
	if st.Wall > 0 {
		v.Wall = draw.Span(st.Wall)
	}
	if st.GPUHours > 0 {
		v.GPUKept = m.Saves()
	}
	if v.Trials = v.Configs; st.Trials > 0 {
		v.Trials = min(v.Trials, st.Trials)
	}
	if fid := st.Fidelity; fid.Name != "" && st.Searcher != "random" {
		for unit := 1; unit < st.Units() && len(v.Rungs) < 12; unit *= 3 {
			v.Rungs = append(v.Rungs, fmt.Sprintf("%s %g", fid.Name, float64(unit)*fid.Min))
		}
		fid.Max = st.Length(false).Max
		v.Rungs = append(v.Rungs, fmt.Sprintf("%s %g", fid.Name, fid.Max))
		if st.Searcher == "default" {
			v.Rungs = []string{fmt.Sprintf("each %s %g, up to %g", fid.Name, fid.Min, fid.Max)}
		}
	}
	v.Prune, v.Checkpoint = pruning(st), cmp.Or(j.Checkpoint.Interval, "auto")
	if j.Checkpoint.Dir == "" {
		v.Checkpoint = ""
	}
	if p.RateUSD != nil {
		extra := float64(read.Parallel) * *p.RateUSD * m.Grace.Hours()
		v.ExtraUSD, v.WorstUSD = &extra, new(budget+extra)
	}
	if p.CostUSD != nil && p.CostUSD[1] > 0 {
		one := p.CostUSD[1]
		runs := budget / one
		v.FullUSD, v.FullRuns = &one, &runs
		v.AllUSD, v.OneMore = new(one*float64(v.Configs)), new(another/one)
		v.TrialsUSD = new(one * float64(v.Trials))
		if st.Proxy == nil {
			v.ExpectedUSD = new(min(budget, one*st.Expected(v.Trials)))
		} else if kept, all := budget*st.Share(), one*float64(st.Proxy.Promote); all > kept {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s cost about %s (median), and %s of the budget is kept for them: "+
				"promote fewer, or raise budget or proxy.reserve", draw.Count(st.Proxy.Promote, "full training"), show.USD(all),
				show.USD(kept)))
		}
	}
	return v
}
