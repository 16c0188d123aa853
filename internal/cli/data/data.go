// Package data holds the commands about inputs of jobs, and about contents that are stored more than once.
package data

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/utilization"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.dataCmd()}
}

// mostRead bounds the jobs that are listed.
const mostRead = 200

// dataFlags select jobs.
type dataFlags struct{ project, team, since string }

func (a *app) dataCmd() *cobra.Command {
	var f dataFlags
	cmd := &cobra.Command{
		Use: "data [JOB]", Short: "Show what bringing inputs cost, and what caches saved",
		Args: command.Takes("[JOB]"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows, for each machine of a job and each input with a name (data in its job file), the bytes that came " +
			"from the machine's cache, the bytes that were read from where the input lies, the time that this took, and " +
			"in dollars what the reading cost and what the cache saved.\n\nThe amounts are the published charges for the " +
			"transfer out of a region, or your own. What a job has spent contains the known cost of reading. It is unknown " +
			"without region in the job file; charges for requests are always unknown. " +
			"Unknown amounts are counted in bytes and are in no sum.\n\nWithout a JOB it " +
			"goes through the newest 200 jobs and lists those whose machines brought inputs. With --json it prints an " +
			"object for each job." + command.PlainExit,
		Example: "  scrimp data train-lm\n  scrimp data --project captioning --since 30d\n  scrimp data --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (f.project != "" || f.team != "" || cmd.Flags().Changed("since")) {
				return errors.New("data: name a JOB, or select jobs with --project, --team and --since, not both")
			}
			return a.With(func(ctx context.Context, c *command.Client, args []string) error {
				if len(args) == 0 {
					return a.dataOfJobs(ctx, c, f)
				}
				j, err := c.Job(ctx, args[0])
				if err != nil {
					return err
				}
				u, err := c.DataUse(ctx, j.ID)
				if err != nil {
					return err
				}
				job := utilization.JobData{Job: j.ID, Name: j.Name, Project: j.Project, Team: j.Team, DataUse: u}
				return a.Show(job, utilization.Data(job, a.Place()))
			})(cmd, args)
		},
	}
	f.declare(cmd)
	cmd.AddCommand(a.duplicatesCmd())
	return cmd
}

// declare adds the flags to a command.
func (f *dataFlags) declare(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.project, "project", "", "the jobs of this `project` (default: all)")
	cmd.Flags().StringVar(&f.team, "team", "", "the jobs of this `team` (default: all that you may see)")
	cmd.Flags().StringVar(&f.since, "since", "30d", "submitted in this `span` until now, as 24h or 7d, or since a time "+
		"such as 2026-12-01T18:00:00Z")
	_ = cmd.RegisterFlagCompletionFunc("project", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("team", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
}

// dataOfJobs lists the newest jobs whose inputs scrimp brought, oldest first.
func (a *app) dataOfJobs(ctx context.Context, c *command.Client, f dataFlags) error {
	jobs, err := a.jobsOf(ctx, c, f)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		return command.ShowEach(a.App, []utilization.JobData{}, utilization.NoJobs(f.team, f.project, a.Place()))
	}
	list := []utilization.JobData{}
	for _, j := range jobs {
		u, err := c.DataUse(ctx, j.ID)
		if err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
		if len(u.Reads) > 0 || u.Unreported > 0 {
			list = append(list, utilization.JobData{Job: j.ID, Name: j.Name, Project: j.Project, Team: j.Team, DataUse: u})
		}
	}
	return command.ShowEach(a.App, list, utilization.DataOfJobs(list, a.Place()))
}

// jobsOf returns the newest of the selected jobs, the oldest first.
func (a *app) jobsOf(ctx context.Context, c *command.Client, f dataFlags) ([]api.Job, error) {
	since, err := command.Moment(f.since, a.Now())
	if err != nil {
		return nil, fmt.Errorf("--since %w", err)
	}
	if !since.Before(a.Now()) {
		return nil, fmt.Errorf("--since %s selects no job: give a span until now such as 7d, or an earlier time", f.since)
	}
	q := url.Values{"since": {since.UTC().Format(time.RFC3339)}, "before": {""}, "limit": {fmt.Sprint(mostRead)}}
	if f.team != "" {
		q.Set("team", f.team)
	}
	jobs, older, err := c.JobsPage(ctx, q)
	if err != nil {
		return nil, err
	}
	if older != "" && len(jobs) > 0 {
		a.Notef("note: the newest %d jobs were read; those before %s were not: choose some by --team\n", len(jobs),
			jobs[0].Submitted.UTC().Format(time.DateTime))
	}
	if f.project != "" {
		jobs = slices.DeleteFunc(jobs, func(j api.Job) bool { return j.Project != f.project })
	}
	return jobs, nil
}
