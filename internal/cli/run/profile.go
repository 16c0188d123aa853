package run

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/cli/submit"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
)

// profiled is what a short run predicts for the long one.
type profiled struct {
	Job          string   `json:"job"`
	StepsPerHour float64  `json:"steps_per_hour"` // on a machine of speed 1
	Spread       *float64 `json:"spread"`         // relative spread from minute to minute; null after a single minute
	Steps        int64    `json:"steps"`          // of the whole work; 0 if unknown
	WorkS        *float64 `json:"work_s"`         // market seconds at speed 1; null if the steps are unknown
	Cost         string   `json:"cost"`
}

func (a *app) profileCmd() *cobra.Command {
	var f jobfile.Flags
	length := 3 * time.Minute
	cmd := &cobra.Command{
		Use: "profile job.yaml", Short: "Run a job for a few minutes, and say how long all of it takes",
		GroupID: command.GroupMoney,
		Long: `Runs the job of a job file on one machine for a short time, saves, and ends it: then it is known how fast its
steps go, and what plan, simulate and the deadline policy should count on. The measured
run is kept, as that of every run is: plan, check and the next run count on it, unless the job file says
another work.time; the line for the job file is printed. The time counts from the first machine on, market
time. It costs what it costs: the receipt stays. Ctrl-C ends the run.` + command.PlainExit,
		Example: "  scrimp profile job.yaml --for 3m",
		Args:    command.TakesJob, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if length < 10*time.Second {
				return fmt.Errorf("--for %v: give 10s or more: the first steps are slow and say little", length)
			}
			return a.profile(cmd.Context(), args, cmd.ArgsLenAtDash(), f, length)
		},
	}
	f.Add(cmd)
	cmd.Flags().DurationVar(&length, "for", length, "how long to run")
	return cmd
}

func (a *app) profile(ctx context.Context, args []string, dash int, f jobfile.Flags, length time.Duration) error {
	if _, _, _, err := jobfile.Load(spec.Run, args, dash, f, a.Now()); err != nil { // before starting a server for it
		return err
	}
	c, v, err := a.Connect(ctx, f.Market)
	if err != nil {
		return err
	}
	j, folder, _, err := jobfile.Load(spec.Run, args, dash, f, v.Market.Now)
	if err != nil {
		return err
	}
	if j, err = pastruns.Modelled(j, folder); err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	steps := j.Work.Steps
	j.Name = runhistory.Profile(j.Name)
	j.Deadline, j.Notify = spec.Deadline{}, spec.Notify{}
	j.Budget.WallClock = spec.Duration(length)
	job, err := submit.Job(ctx, a.App, c, api.Submission{AcceptUnproven: true}, j, folder) // it ends soon
	if err != nil {
		return err
	}
	a.Notef("%s runs for %s\n", job.ID, draw.Span(length))
	final, err := follow.Watch(ctx, a.App, c, job.ID, func(api.Job) {})
	if ctx.Err() != nil && !final.Closed {
		return a.endProfile(ctx, c, job.ID)
	}
	if err != nil {
		return err
	}
	if err := c.Do(ctx, http.MethodGet, command.OfJob(job.ID, ""), nil, &final); err != nil {
		return err
	}
	if final.StepRate == nil {
		why := final.Why
		return fmt.Errorf("%s ended (%s) before a pace was seen: the program must report its steps (progress in the job "+
			"file), ten or more, for longer than three restarts: give --for more, or see scrimp logs %s", job.ID, why, job.ID)
	}
	p := profiledOf(final, steps)
	return a.Show(p, profileText(p))
}

// profiledOf is what a measured run says about the whole job, which has that many steps. With 0 steps it has as many as
// the run reported.
func profiledOf(final api.Job, steps int64) profiled {
	p := profiled{Job: final.ID, StepsPerHour: *final.StepRate, Spread: final.StepSpread, Steps: steps,
		Cost: final.Spent.String()}
	if final.Total != nil && p.Steps == 0 {
		p.Steps = *final.Total
	}
	if p.Steps > 0 {
		work := float64(p.Steps) / p.StepsPerHour * 3600
		p.WorkS = &work
	}
	return p
}

// endProfile ends a run that nobody waits for any more, so that it stops costing money.
func (a *app) endProfile(ctx context.Context, c *command.Client, job string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/end"), api.End{}, nil); err != nil {
		return fmt.Errorf("%s goes on: %w: scrimp cancel %s ends it", job, err, job)
	}
	return fmt.Errorf("interrupted: %s was ended, and nothing was measured", job)
}

func profileText(p profiled) string {
	s := fmt.Sprintf("%s steps an hour on a machine of speed 1", sizing.Rate(p.StepsPerHour))
	if p.Spread != nil {
		s += fmt.Sprintf(", give or take %.0f %% from minute to minute", 100**p.Spread)
	}
	s += "\n"
	if p.WorkS == nil {
		return s + "How many steps there are is unknown: put work.steps into the job file.\n"
	}
	work := time.Duration(*p.WorkS * float64(time.Second)).Round(time.Second)
	return s + fmt.Sprintf("All %d steps take %s. That is kept: plan, check and the next run count on it.\nFor the "+
		"job file, to hold it there as well:\n\n    work: {steps: %d, time: %s}\n", p.Steps, draw.Span(work), p.Steps, work)
}
