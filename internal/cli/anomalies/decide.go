package anomalies

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/job/spec"
)

// needsOperator ends the help of commands that change what a team is shown.
const needsOperator = " It takes an operator of the team, or an admin of all teams where the cost has no team. The " +
	"audit trail records it."

func (a *app) snoozeCmd() *cobra.Command {
	var until string
	cmd := &cobra.Command{Use: "snooze NAME --until WHEN", Short: "Hide an incident until a time",
		Args: command.Takes("NAME"),
		Long: "Hides an incident, and later ones of its kind about the same machine, job or price, until WHEN. scrimp " +
			"anomalies counts them, and --all shows them. A newer snooze replaces the older one; --until now ends it." +
			needsOperator + command.PlainExit,
		Example: "  scrimp anomalies snooze a-0123456789 --until 3d\n" +
			"  scrimp anomalies snooze a-0123456789 --until 2026-12-01",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.SnoozeAnomaly(ctx, args[0], spec.LocalDeadline(until, time.Local))
			return a.decided(ctx, c, v, err)
		})}
	cmd.Flags().StringVar(&until, "until", "", "a span such as 3d, a `time` such as 2026-12-01T18:00Z, a day (midnight "+
		"UTC), or now; up to a year")
	_ = cmd.MarkFlagRequired("until")
	return cmd
}

func (a *app) dismissCmd() *cobra.Command {
	var why string
	cmd := &cobra.Command{Use: "dismiss NAME --why TEXT", Short: "Say that an incident was no problem",
		Args: command.Takes("NAME"),
		Long: "Says that an incident was no problem, hides it, and raises the threshold of its kind in its team from now " +
			"on. The threshold's factor is 1.25 to the power of the dismissed incidents of that kind and team less the " +
			"confirmed ones, from 0.64 to 2.44. The newest answer about an incident counts: scrimp anomalies confirm " +
			"replaces a dismissal." + needsOperator + command.PlainExit,
		Example: "  scrimp anomalies dismiss a-0123456789 --why \"we keep one machine warm\"",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.DismissAnomaly(ctx, args[0], why)
			return a.decided(ctx, c, v, err)
		})}
	cmd.Flags().StringVar(&why, "why", "", "why it is no problem, a `text` of at most 1000 bytes")
	_ = cmd.MarkFlagRequired("why")
	return cmd
}

func (a *app) confirmCmd() *cobra.Command {
	var why string
	cmd := &cobra.Command{Use: "confirm NAME", Short: "Say that an incident was a problem", Args: command.Takes("NAME"),
		Long: "Says that an incident was a problem, and lowers the threshold of its kind in its team from now on, by the " +
			"rule of scrimp anomalies dismiss." + needsOperator + command.PlainExit,
		Example: "  scrimp anomalies confirm a-0123456789 --why \"the job hung\"",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := c.ConfirmAnomaly(ctx, args[0], why)
			return a.decided(ctx, c, v, err)
		})}
	cmd.Flags().StringVar(&why, "why", "", "what the problem was, a `text` of at most 1000 bytes (default: none)")
	return cmd
}

// decided prints what has become of an incident.
func (a *app) decided(ctx context.Context, c *command.Client, v api.Anomaly, err error) error {
	if err != nil {
		return c.Said(ctx, err)
	}
	return a.Show(v, spending.Decided(v, a.Place()))
}

func (a *app) plannedCmd() *cobra.Command {
	var p api.PlanAnomalies
	cmd := &cobra.Command{Use: "planned [--until WHEN --why TEXT]",
		Short: "Plan unusual spending, or list what is planned", Args: command.Takes(),
		Long: "Plans unusual spending: from --since to --until, nothing of the team, the project or the job is an " +
			"incident. Costs of the span are not compared with the usual, nor do they become the usual, and an incident " +
			"that begins or is found in the span counts as planned; scrimp anomalies --all shows it. A span in the past " +
			"corrects the list of the past. Without --team, the plan is of the job's team, else of all teams." +
			needsOperator + "\n\nWithout flags the command lists the planned spans." + command.PlainExit,
		Example: "  scrimp anomalies planned --until 2d --job retrain --why \"retraining from scratch\"\n" +
			"  scrimp anomalies planned --since 2026-12-01 --until 3d --team vision --why benchmark\n" +
			"  scrimp anomalies planned",
	}
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, _ []string) error {
		if p == (api.PlanAnomalies{}) {
			return a.listPlanned(ctx, c)
		}
		if p.Until == "" || p.Why == "" {
			return errors.New("--until or --why is missing: say how long the plan lasts, and what it is")
		}
		p.Since, p.Until = spec.LocalDeadline(p.Since, time.Local), spec.LocalDeadline(p.Until, time.Local)
		v, err := c.PlanAnomalies(ctx, p)
		switch {
		case err != nil:
			return c.Said(ctx, err)
		case a.JSON:
			return a.Print(v)
		}
		a.Printf("%s is planned, from %s to %s UTC. scrimp anomalies unplan %s takes it back.\n", v.Name,
			v.Since.UTC().Format("2006-01-02 15:04"), v.Until.UTC().Format("2006-01-02 15:04"), v.Name)
		return nil
	})
	f := cmd.Flags()
	f.StringVar(&p.Since, "since", "", "beginning: a `time` such as 2026-12-01T18:00Z, a day (midnight UTC) or a span "+
		"from now such as 2h (default: now)")
	f.StringVar(&p.Until, "until", "", "end: a `time`, a day or a span from --since, up to a year; "+
		"required with another flag (default: none)")
	f.StringVar(&p.Team, "team", "", "`team` (default: that of the job, else all)")
	f.StringVar(&p.Project, "project", "", "`project` (default: all)")
	f.StringVar(&p.Job, "job", "", "`job`, group, or name that the runs of a recurring job share (default: all)")
	f.StringVar(&p.Why, "why", "", "what is planned, a `text` of at most 1000 bytes; required with another flag "+
		"(default: none)")
	return cmd
}

func (a *app) listPlanned(ctx context.Context, c *command.Client) error {
	list, err := c.PlannedAnomalies(ctx)
	if err != nil {
		return c.Said(ctx, err)
	}
	return command.ShowEach(a.App, list, spending.Planned(list, a.Place()))
}

func (a *app) unplanCmd() *cobra.Command {
	return &cobra.Command{Use: "unplan NAME", Short: "Remove a planned span", Args: command.Takes("NAME"),
		Long: "Removes a planned span, as if nobody had planned it: what went wrong in it is an incident again." +
			needsOperator + command.PlainExit,
		Example: "  scrimp anomalies unplan p-0123456789",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if err := c.RemovePlannedAnomalies(ctx, args[0]); err != nil {
				return c.Said(ctx, err)
			}
			return a.Showf(map[string]string{"removed": args[0]}, "%s is no longer planned.\n", show.Clean(args[0]))
		})}
}
