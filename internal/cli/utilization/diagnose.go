package utilization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/cli/utilization/nsight"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/profile"
)

// diagnoseFlags select what to diagnose.
type diagnoseFlags struct {
	team, since string
	profiles    []string
}

func (a *app) diagnoseCmd() *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use: "diagnose [JOB]", Short: "Name what makes a job use its machines badly, and what to change",
		Args: command.Takes("[JOB]"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Finds out why a job uses its machines badly, and lists the causes by waste. Each cause has its evidence, " +
			"the saving in dollars an hour with a range (unknown if the job's price is), the change to make in the framework, " +
			"and the effort and risk of that change. It reads what the agents measured, the program's " +
			"output and metrics, the receipt, and profiles: " + profile.Formats + ". A GPU that is used 85 % or more has " +
			"enough to do, 70 % is the target, and below 50 % for ten minutes it is too large. A job needs at least 30 " +
			"seconds of measurements.\n\nWith --team it goes through the newest 200 jobs of a team that were submitted since " +
			"then, and sums up. With --json it prints an object for each job." + command.PlainExit,
		Example: "  scrimp diagnose train-lm\n  scrimp diagnose train-lm --profile trace.json --json\n" +
			"  scrimp diagnose --team vision --since 7d",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && f.team == "":
				return errors.New("diagnose: name a JOB, or a team with --team")
			case len(args) > 0 && f.team != "":
				return errors.New("diagnose: name a JOB or --team, not both")
			case len(args) > 0 && cmd.Flags().Changed("since"):
				return errors.New("diagnose: --since selects jobs of a team: name the team with --team, or leave it out")
			case f.team != "" && len(f.profiles) > 0:
				return errors.New("diagnose: --profile is of one job: name it instead of --team")
			}
			profiles, err := readProfiles(cmd.Context(), f.profiles)
			if err != nil {
				return err
			}
			return a.With(func(ctx context.Context, c *command.Client, args []string) error {
				if f.team != "" {
					return a.diagnoseTeam(ctx, c, f)
				}
				j, err := c.Job(ctx, args[0])
				if err != nil {
					return err
				}
				return a.diagnoseJob(ctx, c, j.ID, profiles)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&f.team, "team", "", "diagnose the jobs of this `team` (default: one JOB)")
	cmd.Flags().StringVar(&f.since, "since", "7d", "with --team: submitted in this `span` until now, as 24h or 7d, or "+
		"since a time such as 2026-12-01T18:00:00Z")
	cmd.Flags().StringArrayVar(&f.profiles, "profile", nil, "read this `file` of a profiler (default none; may be "+
		"repeated)")
	_ = cmd.RegisterFlagCompletionFunc("team", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	return cmd
}

// readProfiles reads profiler files.
func readProfiles(ctx context.Context, names []string) (list []profile.Profile, err error) {
	for _, name := range names {
		some, err := readProfile(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("diagnose: --profile: %w", err)
		}
		list = append(list, some...)
	}
	return list, nil
}

// readProfile reads the profiles of a file: Nsight Systems records GPUs and threads.
func readProfile(ctx context.Context, name string) (list []profile.Profile, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name a file in it", name)
	}
	if nsight.Is(f) {
		return nsight.Read(ctx, name)
	}
	p, err := profile.Read(name, f)
	return []profile.Profile{p}, err
}

// diagnoseJob asks the server for the causes, and adds profiles.
func (a *app) diagnoseJob(ctx context.Context, c *command.Client, job string, profiles []profile.Profile) error {
	path, method, body := command.OfJob(job, "/diagnosis"), http.MethodGet, any(nil)
	if len(profiles) > 0 {
		method, body = http.MethodPost, struct {
			Profiles []profile.Profile `json:"profiles"`
		}{profiles}
	}
	var r diagnose.Report
	if err := c.Do(ctx, method, path, body, &r); err != nil {
		return err
	}
	return a.Show(r, utilization.Diagnosis(r, a.Place()))
}

// diagnoseTeam diagnoses the newest jobs of a team.
func (a *app) diagnoseTeam(ctx context.Context, c *command.Client, f diagnoseFlags) error {
	since, err := command.Moment(f.since, a.Now())
	if err != nil {
		return fmt.Errorf("--since %w", err)
	}
	var reports []diagnose.Report
	q := url.Values{"team": {f.team}, "since": {since.UTC().Format(time.RFC3339)}}
	if err := c.Do(ctx, http.MethodGet, client.Path("/v1/diagnoses", q), nil, &reports); err != nil {
		return err
	}
	return command.ShowEach(a.App, reports, utilization.Diagnoses(f.team, reports, a.Place()))
}
