// Package ab holds the command that compares a job with a change of it.
package ab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/ab"
)

// flags holds the flags of scrimp ab.
type flags struct {
	job                           jobfile.Flags
	set                           []string
	tolerance, goal, budget, name string
	seeds, first                  int
	counted                       bool // --seeds was given
	plan, yes, detach, force      bool
}

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	return []*cobra.Command{(&app{shared}).cmd()}
}

func (a *app) cmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "ab job.yaml|JOB --set FIELD=VALUE", Short: "Compare a job with a change of it, by pairs of runs with one seed",
		GroupID: command.GroupMoney, ValidArgsFunction: command.CompleteJobFile,
		Args: command.Takes("job.yaml|JOB"),
		Long: `Runs a job as its file says (the baseline) and with one or more fields changed, in pairs: both runs of a
pair have the same seed in SCRIMP_SEED. Then it shows quality, time, peak memory and dollars of both, and
what the change saves. All runs have one budget.

With --tolerance it judges the quality: no worse than the tolerance allows, worse, better, or it cannot tell
and says what more pairs would cost. A false "no worse" has a probability of at most 5 %, although it looks
after each pair and cancels the runs that are left once it is decided. Fewer than 6 pairs never tell.

Instead of a file, the baseline may be a JOB that was submitted before, with its work folder. Without --set, the
argument is a comparison that was submitted before, which is shown again.

Exit status: 0 no worse, better, not judged or detached, 1 error, 2 not run: nothing fits, 3 worse, cannot tell, or a
run failed.`,
		Example: "  scrimp ab job.yaml --set env.PRECISION=bf16 --tolerance accuracy=0.2% --budget '$20' --plan\n" +
			"  scrimp ab -y job.yaml --set resources.accelerator=T4 --seeds 3\n  scrimp ab status train-ab",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.set) == 0 {
				return a.show(cmd, args, f)
			}
			f.counted = cmd.Flags().Changed("seeds")
			return a.compare(cmd.Context(), args[0], f)
		},
	}
	f.job.Add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.set, "set", nil, "the change: set this `FIELD=VALUE` of the job file, as env.PRECISION=bf16 "+
		"(may be repeated; default: none, and there is nothing to compare)")
	fs.StringVar(&f.tolerance, "tolerance", "", "how much worse the change may be: `METRIC=AMOUNT`, as accuracy=0.2% "+
		"of the baseline's value or loss=0.01 (default: quality is not judged)")
	fs.StringVar(&f.goal, "goal", "", "whether less or more of the metric is better: minimize or maximize (default: "+
		"as the job file or the metric's name says)")
	fs.IntVar(&f.seeds, "seeds", 0, "`number` of pairs, 1 to 50 (default 6 with --tolerance, else 3)")
	fs.IntVar(&f.first, "first-seed", 1, "`seed` of the first pair; the others count up from it")
	fs.StringVar(&f.budget, "budget", "", "let all runs together cost at most this `amount`, as '$20' (default: the "+
		"budget of the job file for each run)")
	fs.StringVar(&f.name, "name", "", "call the comparison by this `name`, which no other has (default: "+
		"the job's name with -ab, and a number if that is taken)")
	fs.BoolVar(&f.plan, "plan", false, "show what the pairs would cost and can tell, and run nothing (default: run)")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before money is spent (default: ask at a terminal)")
	fs.BoolVarP(&f.detach, "detach", "d", false, "submit and return; nothing stops it early then (default: show the "+
		"progress)")
	fs.BoolVar(&f.force, "force", false, "let long runs go on spot without proven checkpoints, and let them wait for "+
		"an accelerator that nothing for sale has (default: refuse them)")
	_ = cmd.RegisterFlagCompletionFunc("goal", command.Words("minimize", "maximize"))
	for _, name := range []string{"set", "tolerance", "seeds", "first-seed", "budget", "name"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	cmd.AddCommand(&cobra.Command{Use: "status NAME", Short: "Show a comparison again", Args: command.Takes("NAME"),
		Long: "Shows the newest comparison of that name: its arms, the difference and the verdict." +
			command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.status(ctx, c, args[0])
		})})
	return cmd
}

// show shows an earlier comparison, or explains that a baseline needs a change.
func (a *app) show(cmd *cobra.Command, args []string, f flags) error {
	if _, err := os.Stat(args[0]); err == nil || isFile(args[0]) || f.tolerance != "" || f.plan {
		return fmt.Errorf("ab: say what changes: scrimp ab %s --set FIELD=VALUE, such as --set env.PRECISION=bf16", args[0])
	}
	return a.With(func(ctx context.Context, c *command.Client, args []string) error {
		return a.status(ctx, c, args[0])
	})(cmd, args)
}

// isFile reports whether a name denotes a file and not a job.
func isFile(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) ||
		slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// baseline is the source of a comparison's job.
type baseline struct {
	text   []byte
	file   string // empty for an earlier job
	job    string
	folder string
}

// readBaseline reads the job file, or the file of an earlier job.
func (a *app) readBaseline(ctx context.Context, name string, f flags) (b baseline, err error) {
	b.text, err = jobfile.ReadFile(name, spec.MaxText)
	if err == nil {
		b.file = name
		return b, nil
	}
	if isFile(name) || !os.IsNotExist(err) {
		return b, fmt.Errorf("read the job file: %w: name a job file, or a job as scrimp jobs lists it", err)
	}
	c, err := a.Ensure(ctx, f.job.Market)
	if err != nil {
		return b, err
	}
	j, err := c.Spec(ctx, name)
	if err != nil {
		return b, err
	}
	j.Deadline = spec.Deadline{} // it may be in the past
	b.job = name
	b.text, err = j.Encode()
	return b, err
}

// arm is one of the two variants.
type arm struct {
	name string
	job  spec.Job
}

// Names of the arms.
const (
	baselineArm = "baseline"
	changeArm   = "change"
)

// arms reads both variants. now is in market time.
func (b *baseline) arms(f flags, now time.Time) (list [2]arm, notes []spec.Note, err error) {
	load := func(text []byte) (spec.Job, []spec.Note, error) {
		jf := f.job
		jf.Text = text
		j, folder, notes, err := jobfile.Load(spec.Run, []string{cmp.Or(b.file, b.job+".json")}, -1, jf, now)
		if b.file != "" {
			b.folder = folder
		}
		return j, notes, err
	}
	list[0].name, list[1].name = baselineArm, changeArm
	if list[0].job, notes, err = load(b.text); err != nil {
		return list, nil, err
	}
	text, fields := b.text, []string{}
	for _, s := range f.set {
		field, value, ok := strings.Cut(s, "=")
		if !ok || field == "" {
			return list, nil, fmt.Errorf("--set %q: write FIELD=VALUE, such as env.PRECISION=bf16", s)
		}
		if err := setOnce(fields, field); err != nil {
			return list, nil, err
		}
		fields = append(fields, field)
		if text, err = spec.With(text, field, value); err != nil {
			return list, nil, fmt.Errorf("--set %s: %w", s, err)
		}
	}
	if list[1].job, _, err = load(text); err != nil {
		if problems, ok := errors.AsType[spec.Problems](err); ok { // the line numbers belong to no file
			for i := range problems {
				problems[i].File, problems[i].Line, problems[i].Column = "", 0, 0
			}
			err = problems
		}
		return list, nil, fmt.Errorf("--set %s: %w", strings.Join(f.set, " --set "), err)
	}
	if err := seedLeftAlone(list, fields); err != nil {
		return list, nil, err
	}
	same := [2][]byte{}
	for i := range list {
		if same[i], err = stageOf(list[i].job).Encode(); err != nil {
			return list, nil, err
		}
	}
	if slices.Equal(same[0], same[1]) {
		return list, nil, fmt.Errorf("--set %s changes nothing: the baseline has that already, or a comparison runs without "+
			"it (name, team, tags, budget, deadline, outputs)", strings.Join(f.set, " --set "))
	}
	return list, notes, nil
}

// setOnce refuses a field that an earlier --set has set, directly or through a parent or child field: one would replace
// the other.
func setOnce(before []string, field string) error {
	for _, other := range before {
		if field == other {
			return fmt.Errorf("--set %s is given twice: give it once", field)
		}
		if strings.HasPrefix(field, other+".") || strings.HasPrefix(other, field+".") {
			return fmt.Errorf("--set %s and --set %s set the same field: give it once", other, field)
		}
	}
	return nil
}

// seedLeftAlone refuses a change of the seed or of the alternatives, which would override the seed of each pair.
func seedLeftAlone(list [2]arm, fields []string) error {
	base, change := list[0].job, list[1].job
	before, had := base.Env[spec.SeedVariable]
	after, has := change.Env[spec.SeedVariable]
	if had != has || before != after || slices.Contains(fields, "env."+spec.SeedVariable) {
		return fmt.Errorf("--set env.%s: scrimp sets it for each pair, so a change of it reaches no run: choose the seeds "+
			"by --first-seed and --seeds", spec.SeedVariable)
	}
	for _, v := range slices.Concat(base.AnyOf, change.AnyOf) {
		if _, set := v.Env[spec.SeedVariable]; set {
			return fmt.Errorf("`any_of` sets %s, which scrimp sets for each pair: leave it out", spec.SeedVariable)
		}
	}
	return nil
}

// stageOf returns the part of a job that each run of a comparison has, without the fields of the whole comparison.
func stageOf(j spec.Job) spec.Job {
	j.Name, j.Team, j.Project, j.Tags, j.Environment, j.ModelVersion = "", "", "", nil, "", ""
	j.Secrets, j.Inherit, j.Outputs, j.Workdir = nil, nil, nil, ""
	j.Deadline, j.First, j.Budget.Dollars = spec.Deadline{}, "", nil
	return j
}

// wholeOf returns the job file of the whole comparison.
func wholeOf(j spec.Job, name string, budget money.Amount) (w spec.Job) {
	w.Name, w.Team, w.Project, w.Tags = name, j.Team, j.Project, j.Tags
	w.Environment, w.ModelVersion = j.Environment, j.ModelVersion
	w.Secrets, w.Inherit = j.Secrets, j.Inherit
	w.Budget.Dollars = &budget
	return w
}

// design returns the experiment design from the flags and the baseline.
func (f *flags) design(j spec.Job) (d ab.Design, err error) {
	d = ab.Design{Pairs: f.seeds, First: f.first, Set: f.set}
	if f.tolerance == "" && f.goal != "" {
		return d, errors.New("--goal: there is no metric to judge: give --tolerance METRIC=AMOUNT too")
	}
	if f.tolerance != "" {
		if d.Metric, d.Tolerance, d.Relative, err = ab.ParseTolerance(f.tolerance); err != nil {
			return d, fmt.Errorf("--tolerance: %w", err)
		}
		if d.Metric = cmp.Or(d.Metric, j.Metric.Name); d.Metric == "" {
			return d, fmt.Errorf("--tolerance %s is of no metric: write METRIC=%s, or name the metric in the job file "+
				"(metric.name)", f.tolerance, f.tolerance)
		}
		if d.Maximize, err = f.maximize(d.Metric, j); err != nil {
			return d, err
		}
	}
	if d.Pairs == 0 && !f.counted {
		d.Pairs = 3
		if d.Metric != "" {
			d.Pairs = ab.MinPairs
		}
	}
	if err := d.Check(); err != nil {
		return d, fmt.Errorf("--seeds, --first-seed: %w", err)
	}
	return d, nil
}

// maximize reports whether a higher value of a metric is better.
func (f *flags) maximize(metric string, j spec.Job) (bool, error) {
	guess, known := ab.Goal(metric)
	said := ""
	if j.Metric.Name == metric {
		said = cmp.Or(j.Metric.Goal, "minimize")
	}
	switch {
	case f.goal == "minimize" || f.goal == "maximize":
		return f.goal == "maximize", nil
	case f.goal != "":
		return false, fmt.Errorf("--goal %q: write minimize or maximize", f.goal)
	case said != "" && known && (said == "maximize") != guess:
		return false, fmt.Errorf("%s: the job file says %s (its default, where metric.goal is not given), which its name "+
			"does not: give --goal minimize or --goal maximize", metric, said)
	case said != "":
		return said == "maximize", nil
	case known:
		return guess, nil
	}
	return false, fmt.Errorf("%s: is less of it better, or more? Give --goal minimize or --goal maximize", metric)
}
