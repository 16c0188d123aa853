package utilization

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/utilization"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
)

// Bounds on the output read of a job, and on the jobs of a team.
const (
	mostOutput    = 5000 // lines
	mostDiagnosed = 200
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
			case f.team != "" && len(f.profiles) > 0:
				return errors.New("diagnose: --profile is of one job: name it instead of --team")
			}
			profiles, err := readProfiles(f.profiles)
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
				return a.diagnoseJob(ctx, c, j, profiles)
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
func readProfiles(names []string) (list []profile.Profile, err error) {
	for _, name := range names {
		p, err := readProfile(name)
		if err != nil {
			return nil, fmt.Errorf("diagnose: --profile: %w", err)
		}
		list = append(list, p)
	}
	return list, nil
}

func readProfile(name string) (p profile.Profile, err error) {
	f, err := os.Open(name)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return p, fmt.Errorf("%s is a folder: name a file in it", name)
	}
	return profile.Read(name, f)
}

func (a *app) diagnoseJob(ctx context.Context, c *command.Client, j api.Job, profiles []profile.Profile) error {
	in, err := a.evidence(ctx, c, j)
	if err != nil {
		return err
	}
	in.Profiles = profiles
	for _, p := range profiles {
		for _, o := range p.Operators {
			in.Framework = cmp.Or(in.Framework, class.FrameworkOf(o.Name))
		}
	}
	r := diagnose.Diagnose(in)
	return a.Show(r, utilization.Diagnosis(r, a.Place()))
}

// diagnoseTeam diagnoses the newest jobs of a team.
func (a *app) diagnoseTeam(ctx context.Context, c *command.Client, f diagnoseFlags) error {
	since, err := command.Moment(f.since, a.Now())
	if err != nil {
		return fmt.Errorf("--since %w", err)
	}
	var reports []diagnose.Report
	jobs, _, err := c.JobsPage(ctx, url.Values{"team": {f.team}, "since": {since.UTC().Format(time.RFC3339)},
		"before": {""}, "limit": {fmt.Sprint(mostDiagnosed)}})
	if err != nil {
		return err
	}
	for _, j := range slices.Backward(jobs) {
		in, err := a.evidence(ctx, c, j)
		if err != nil {
			return fmt.Errorf("%s: %w", j.ID, err)
		}
		reports = append(reports, diagnose.Diagnose(in))
	}
	return command.ShowEach(a.App, reports, utilization.Diagnoses(f.team, reports, a.Place()))
}

// evidence collects what the server knows about a job.
func (a *app) evidence(ctx context.Context, c *command.Client, j api.Job) (in diagnose.Input, err error) {
	in = diagnose.Input{Job: j.ID, Live: !j.Closed, Metrics: j.Metrics}
	t, err := c.Telemetry(ctx, j.ID, 0, 0)
	if err != nil {
		return in, err
	}
	for _, n := range t.Nodes {
		in.Nodes = append(in.Nodes, nodeOf(n))
	}
	r, err := c.Receipt(ctx, j.ID)
	if err != nil {
		return in, err
	}
	in.Account = accountOf(r)
	if in.Account.HourlyUSD == nil && j.Rate != nil && j.Currency == money.USD {
		in.Account.HourlyUSD = new(j.Rate.Float())
	}
	if in.Lines, err = output(ctx, c, j.ID); err != nil {
		return in, err
	}
	texts := make([]string, 0, len(in.Lines)+1)
	for _, l := range in.Lines {
		texts = append(texts, l.Text)
	}
	var raw json.RawMessage
	if err := c.Do(ctx, http.MethodGet, command.OfJob(j.ID, "/spec"), nil, &raw); err != nil {
		return in, err
	}
	if s, _, err := spec.ParseJSON(spec.Read, raw, "", a.Now()); err == nil { // an older release's may be unreadable
		in.Account.Requested = int64(s.Resources.Memory.Min)
		texts = append(texts, s.Command, s.Setup, strings.Join(s.Args, " "))
	}
	in.Framework = class.FrameworkOf(texts...)
	return in, nil
}

// nodeOf converts a machine's telemetry.
func nodeOf(n api.TelemetryNode) diagnose.Node {
	out := diagnose.Node{Rank: n.Node, Head: telemetry.Head{Driver: n.Driver}}
	if n.Cores != nil {
		out.Head.Cores = *n.Cores
	}
	if n.Memory != nil {
		out.Head.Memory = *n.Memory
	}
	for _, g := range n.GPUs {
		d := telemetry.Device{Index: g.Index, Name: g.Name}
		if g.Memory != nil {
			d.Memory = *g.Memory
		}
		if g.Power != nil {
			d.Power = *g.Power
		}
		out.Head.GPUs = append(out.Head.GPUs, d)
	}
	for _, b := range n.Buckets {
		one := telemetry.Bucket{Start: b.At.Unix(), Width: int64(b.Width), Covered: b.Covered}
		for name, values := range b.Mean {
			m, known := telemetry.Named(name)
			if !known { // from a later release
				continue
			}
			for i, v := range values {
				one.V[m] = append(one.V[m], valueOf(v, b.Peak[name], i))
			}
		}
		out.Buckets = append(out.Buckets, one)
	}
	return out
}

func valueOf(mean *float64, peaks []*float64, i int) telemetry.Value {
	switch {
	case mean == nil:
		return telemetry.Unknown
	case i < len(peaks) && peaks[i] != nil:
		return telemetry.Value{Mean: *mean, Max: *peaks[i]}
	}
	return telemetry.Exactly(*mean)
}

// accountOf returns the job's costs from its receipt, including the cost of an hour with machines.
func accountOf(r receipt.Receipt) (out diagnose.Account) {
	out.Step, out.Checkpoints, out.SaveSeconds = r.Step, r.Checkpoints, r.SaveSeconds
	if r.Total != nil {
		out.Total = *r.Total
	}
	cost, hours := 0.0, 0.0
	for _, t := range r.Tries {
		span, spent := t.Until.Sub(t.From).Hours(), t.Cost.Float()
		if t.Rate > 0 { // a minimum charge is not an hourly price
			spent = min(spent, t.Rate.Float()*span)
		}
		cost, hours = cost+spent, hours+span
	}
	if r.Currency == money.USD && hours > 0 && cost > 0 {
		out.HourlyUSD = new(cost / hours)
	}
	return out
}

// output returns the last lines of a job's output with their times.
func output(ctx context.Context, c *command.Client, job string) (list []diagnose.Line, err error) {
	r, err := c.Request(ctx, http.MethodGet, command.OfJob(job, "/log")+"?"+url.Values{"format": {"json"},
		"tail": {fmt.Sprint(mostOutput)}}.Encode())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	for d := json.NewDecoder(r.Body); ; {
		var l api.LogLine
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of %s: %w", job, err)
		}
		one := diagnose.Line{Text: l.Line}
		if l.At != nil {
			one.At = l.At.Unix()
		}
		list = append(list, one)
	}
}
