package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/job/spec"
	"scrimp/internal/work/retrain"
	"scrimp/internal/work/schedule"
)

func (a *app) scheduleCmd() *cobra.Command {
	f := flags{scheduled: true, detach: true}
	cmd := &cobra.Command{
		Use: "schedule [pipeline.yaml]", Short: "Run a pipeline by the clock, within one budget for all runs",
		Long: `Runs the pipeline of a file each time its schedule is due. The file says when, below schedule: cron,
zone, the budget of all runs together, and, where they are to end, runs or until; a flag counts more. budget at
the top of the file is that of one run. Each run is a pipeline of its own, NAME.r1 and so on, which runs only the
stages that something has changed for. The work folder is sent once: what is new comes from a stage with
always_changed: true that fetches it. A run is skipped while the one before it is not over. What was due while
the server was down is made up for by one run, or, with catch_up: false, skipped. Conditions of the file skip
runs: on_data (new objects of a folder or bucket), when_it_pays (expected gain against expected cost) and
not_before (a price, for which a run waits until by); docs/retrain.md explains them.

scrimp pipeline status NAME shows the runs, scrimp cancel NAME ends the schedule with its run.` + command.PlainExit,
		Example: "  scrimp pipeline schedule --cron '0 3 * * *' --zone Europe/Berlin --total '$200'\n" +
			"  scrimp pipeline status retrain",
		Args: command.Takes("[pipeline.yaml]"), ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.nameGiven, f.costsGiven = cmd.Flag("name").Changed, cmd.Flag("budget").Changed
			if cmd.Flag("runs").Changed && f.runs < 1 {
				return fmt.Errorf("--runs %d: write 1 or more, or leave it out for runs without end", f.runs)
			}
			return a.run(cmd.Context(), args, f)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.cron, "cron", "", "run at these times: `line` of minute, hour, day of month, month and day "+
		"of week (default: as its file says)")
	cmd.Flags().StringVar(&f.zone, "zone", "", "take the times as those of this `zone`, as Europe/Berlin (default: as "+
		"its file says, else UTC)")
	cmd.Flags().StringVar(&f.total, "total", "", "let all runs together cost at most this `amount`, as '$200' (default: "+
		"as its file says)")
	cmd.Flags().IntVar(&f.runs, "runs", 0, "end after so many runs (default: as its file says, else without end)")
	for _, name := range []string{"cron", "zone", "total", "runs"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// alone returns an error if an open schedule has the name: both would spend money.
func alone(ctx context.Context, c *command.Client, name string) error {
	list, err := c.Groups(ctx)
	for _, g := range list {
		if g.Schedule != nil && g.Name == name && g.State != "over" {
			return fmt.Errorf("the schedule %s of that name is open: end it with scrimp cancel %s, or give --name", g.ID, g.ID)
		}
	}
	return err
}

// schedules adds the schedule to the request.
func (f *flags) schedules(p *prepared, now time.Time) error {
	var y schedule.Spec
	if p.file.Schedule != nil {
		y = *p.file.Schedule
	}
	if f.cron != "" {
		y.Cron = f.cron
	}
	if f.zone != "" {
		y.Zone = f.zone
	}
	if f.runs != 0 {
		y.Runs = f.runs
	}
	if y.Cron == "" {
		return errors.New("nothing says when it runs: write schedule: with cron below it into the file, or give " +
			"--cron '0 3 * * *'")
	}
	dated := y
	dated.Until = time.Time{} // market time: the server checks it against its clock
	if err := dated.Check(now); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	total := p.file.Total
	if f.total != "" {
		amount, err := spec.ParseBudget(f.total)
		if err != nil {
			return fmt.Errorf("--total: %w", err)
		}
		total = &amount
	}
	if total == nil {
		return errors.New("nothing says what all runs together may cost: write budget: $200 below schedule, or give " +
			"--total '$200'")
	}
	p.wire.Schedule = &api.Schedule{Cron: y.Cron, Zone: y.Zone, Budget: *total, Runs: y.Runs, NoCatchUp: y.NoCatchUp,
		Notify: y.Notify, ScheduleConditions: conditions(y.When, p.folder)}
	if !y.Until.IsZero() {
		p.wire.Schedule.Until = &y.Until
	}
	if odd := y.Odd(now); odd != "" {
		p.file.Notes = append(p.file.Notes, odd)
	}
	return nil
}

// conditions returns the conditions of a schedule for the server. A folder in on_data is relative to that of the file.
func conditions(c retrain.Conditions, folder string) (v api.ScheduleConditions) {
	if d := c.Data; d != nil {
		at := d.Path
		if !strings.Contains(at, "://") && !filepath.IsAbs(at) {
			at = filepath.Join(folder, filepath.FromSlash(at))
		}
		v.OnData = &api.ScheduleData{Path: at, AtLeast: d.AtLeast}
	}
	if p := c.Price; p != nil {
		v.NotBefore = &api.SchedulePrice{Most: p.Most, By: p.By}
	}
	if p := c.Pays; p != nil {
		v.WhenItPays = &api.SchedulePays{Value: p.Value, Metric: p.Metric, Point: p.Point, Goal: p.Goal, Runs: p.AtLeast,
			Latest: p.Latest}
	}
	return v
}
