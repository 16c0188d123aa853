package ab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	cliplan "scrimp/internal/cli/plan"
	"scrimp/internal/cli/show/comparison"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/ab"
)

// param is the parameter of each run that marks a pipeline as a comparison and holds its design.
const param = "ab"

// record is the record of a comparison in each of its runs.
type record struct {
	ab.Design
	Baseline string `json:"baseline"`
	Shown    string `json:"shown,omitempty"` // the displayed metric, judged or not
	Arm      string `json:"arm"`
	Seed     int    `json:"seed"`
	Key      string `json:"key"` // unique to this comparison, so it reuses no run of another one
}

// compare compares a job with a changed version of it.
func (a *app) compare(ctx context.Context, name string, f flags) error {
	b, err := a.readBaseline(ctx, name, f)
	if err != nil {
		return err
	}
	if _, _, _, err := b.designed(f, a.Now()); err != nil { // before a server is started for it
		return err
	}
	c, v, err := a.Connect(ctx, f.job.Market)
	if err != nil {
		return err
	}
	arms, d, notes, err := b.designed(f, v.Market.Now)
	if err != nil {
		return err
	}
	jobfile.Note(a.App, notes)
	p, budget, err := a.foretell(ctx, c, v, arms, d, f)
	switch {
	case err != nil:
		return err
	case f.plan:
		if err := a.Show(p, p.Text(a.Place())); err != nil {
			return err
		}
	case !a.JSON:
		a.Notef("%s", p.Text(a.Line()))
	}
	if p.Unfit != "" && !f.force {
		return &command.Verdict{Exit: command.Infeasible, Err: errors.New("not run: " + p.Unfit)}
	}
	if f.plan {
		return nil
	}
	if budget == nil {
		return errors.New("not run: all runs together need a budget: give --budget, such as --budget '$20'")
	}
	if err := a.Ask(ctx, "Run it? [Y/n] ", f.yes); err != nil {
		return err
	}
	return a.submit(ctx, c, b, arms, d, f, p.Name, *budget)
}

// designed returns the two jobs of a comparison and its design.
func (b *baseline) designed(f flags, now time.Time) (arms [2]arm, d ab.Design, notes []spec.Note, err error) {
	if arms, notes, err = b.arms(f, now); err != nil {
		return arms, d, notes, err
	}
	d, err = f.design(arms[0].job)
	return arms, d, notes, err
}

// foretell returns a comparison's expected cost and power, and its budget; nil without a budget.
func (a *app) foretell(ctx context.Context, c *command.Client, v api.Server, arms [2]arm, d ab.Design, f flags) (
	p comparison.Plan, budget *money.Amount, err error) {
	base := arms[0].job
	p = comparison.Plan{Name: base.Name + "-ab", Baseline: base.Name, Design: d, Runs: 2 * d.Pairs}
	if f.name != "" {
		if spec.Label(f.name) != f.name {
			return p, nil, fmt.Errorf("--name %q: use small letters, digits and dashes, such as %s", f.name, spec.Label(f.name))
		}
		p.Name = f.name
	}
	if p.Name, err = freeName(ctx, c, p.Name, f.name != ""); err != nil {
		return p, nil, err
	}
	if budget, err = f.budgetOf(base, d); err != nil {
		return p, nil, err
	}
	if budget != nil {
		p.Budget = new(money.Short(*budget, money.USD))
	}
	for i, x := range arms {
		j, _ := pastruns.From(ctx, a.App, c, x.job)
		j.Budget.Dollars, j.Deadline = nil, spec.Deadline{}
		one, err := cliplan.Predict(ctx, a.App, c, j, v)
		if err != nil {
			return p, nil, fmt.Errorf("%s: %w", x.name, err)
		}
		if why := cliplan.Unfit(one); why != "" && p.Unfit == "" {
			p.Unfit = x.name + ": " + why + "; with --force it waits until something fits"
		}
		if one.Known && one.CostUSD != nil && one.Take != "" {
			p.Each[i] = one.CostUSD
		}
	}
	p.Total(budget)
	p.Notes = warnings(base, d)
	return p, budget, nil
}

// budgetOf is what all runs of a comparison together may cost: what --budget says, else the baseline's own budget for
// each; nil where neither is given.
func (f flags) budgetOf(base spec.Job, d ab.Design) (*money.Amount, error) {
	if f.budget != "" {
		amount, err := spec.ParseBudget(f.budget)
		if err != nil {
			return nil, fmt.Errorf("--budget: %w", err)
		}
		return &amount, nil
	}
	if own := base.Budget.Dollars; own != nil {
		return new(own.Times(2 * d.Pairs)), nil
	}
	return nil, nil
}

// freeName returns the name of a new comparison. If a pipeline or comparison of the same user has the name, freeName
// refuses a name that the user gave and numbers any other: scrimp ab status would no longer show the older one.
func freeName(ctx context.Context, c *command.Client, name string, given bool) (string, error) {
	var me api.Me
	if err := c.Do(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return "", err
	}
	list, err := c.Groups(ctx)
	if err != nil {
		return "", err
	}
	taken := map[string]string{}
	for _, g := range list {
		if g.Kind == "pipeline" && g.User == me.User {
			taken[g.ID], taken[g.Name] = g.ID, g.ID
		}
	}
	free := name
	for n := 2; taken[free] != ""; n++ {
		end := "-" + strconv.Itoa(n)
		free = spec.Label(name[:min(len(name), spec.MaxName-len(end))]) + end
	}
	if given && free != name {
		return "", fmt.Errorf("--name %s: %s has that name already: give another, such as --name %s", name, taken[name], free)
	}
	return free, nil
}

// warnings lists what a user should know before a comparison spends money.
func warnings(j spec.Job, d ab.Design) (list []string) {
	program := j.Command + strings.Join(j.Args, " ")
	list = append(list, "the program has to take its random seed, and the order of its data, from SCRIMP_SEED")
	if strings.Contains(program, spec.SeedVariable) {
		list = nil
	}
	if d.Metric != "" && j.Metric.Name != d.Metric && !strings.Contains(j.Progress.Pattern, "(?P<"+d.Metric+">") {
		list = append(list, fmt.Sprintf("%s is neither metric.name nor a group of progress.pattern: the program has to "+
			"report it by the helper, or in SCRIMP_PROGRESS_FILE", d.Metric))
	}
	if len(j.Outputs) > 0 {
		list = append(list, "outputs of the runs are not kept")
	}
	return list
}

// submit submits a comparison and follows it.
func (a *app) submit(ctx context.Context, c *command.Client, b baseline, arms [2]arm, d ab.Design, f flags,
	name string, budget money.Amount) error {
	wire := api.Pipeline{AtOnce: 2} // both runs of a pair
	key := jobfile.Key()
	for seed := d.First; seed < d.First+d.Pairs; seed++ {
		for _, x := range arms {
			j := stageOf(x.job)
			j.Name = x.name
			j.Budget.Dollars = x.job.Budget.Dollars
			j, err := j.WithEnv([]string{fmt.Sprintf("%s=%d", spec.SeedVariable, seed)})
			if err == nil && b.file != "" {
				j, err = pastruns.Modelled(j, b.folder)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			if b.file != "" {
				j = pastruns.Given(j, b.folder)
			}
			text, err := j.Encode()
			if err != nil {
				return err
			}
			kept, err := json.Marshal(record{d, arms[0].job.Name, cmp.Or(d.Metric, arms[0].job.Metric.Name), x.name, seed, key})
			if err != nil || len(kept) > 4000 {
				return errors.New("the fields of --set are too long: 3,000 letters together are the most")
			}
			wire.Stages = append(wire.Stages, api.PipelineStage{Name: x.name + "-" + strconv.Itoa(seed), Job: api.Raw(text),
				Params: map[string]string{param: string(kept)}, Always: true})
		}
	}
	whole := wholeOf(arms[0].job, name, budget)
	s := api.Submission{AcceptUnproven: f.force, AcceptWait: f.force, Pipeline: &wire}
	s, err := submit.Request(ctx, a.App, c, s, whole, b.folder)
	if err != nil {
		return err
	}
	s.Rerun = b.job
	g, err := c.SubmitGroup(ctx, s)
	switch {
	case err != nil:
		return err
	case !f.detach:
		return a.follow(ctx, c, g.ID)
	}
	a.Waiting(ctx, c)
	return a.Showf(g, "%s is submitted: scrimp ab status %s shows it.\n", g.ID, g.ID)
}
