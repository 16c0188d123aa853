package share

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/decide/budget"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/view/convert"
)

func (a *app) budgetsCmd() *cobra.Command {
	list := a.With(func(ctx context.Context, c *command.Client, _ []string) error {
		var v api.Budgets
		if err := c.Do(ctx, http.MethodGet, "/v1/budgets", nil, &v); err != nil {
			return err
		}
		return a.Show(v, spending.Budgets(v, a.Place()))
	})
	cmd := &cobra.Command{Use: "budgets", Short: "List and set limits on dollars, GPU-hours, jobs and GPUs",
		Args:    command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Lists the limits that you may see: what is spent in the window, what is reserved for jobs that are not " +
			"over, the expected spend of running and queued jobs by its end, and when which of them reach the limit. " +
			"The server admits a job where spent, reserved and the most that the job can cost stay within every limit that " +
			"applies." + command.PlainExit,
		RunE: list}
	cmd.AddCommand(a.budgetsSetCmd(), a.budgetsRateCmd(), a.budgetsRmCmd(), a.budgetsTagCmd(), a.budgetsShareCmd())
	return cmd
}

// budgetFields are the flags and arguments of the fields that the server's errors name.
var budgetFields = map[string]string{"limit.dollars": "--dollars", "limit.notify": "--notify", "share": "TEAM"}

func (a *app) putBudget(ctx context.Context, c *command.Client, b api.SetBudget, done string) error {
	if err := c.Do(ctx, http.MethodPut, "/v1/budgets", b, nil); err != nil {
		return command.InFlags(err, budgetFields)
	}
	return a.Showf(map[string]string{"done": done}, "%s\n", done)
}

// window holds the flags that name a scope and a window.
type window struct {
	scope                    string
	team, project, user, tag string
	day, week, month, ever   bool
}

func (w *window) flags(cmd *cobra.Command) {
	w.scopeFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&w.day, "day", false, "in a calendar day, UTC (default: a month)")
	f.BoolVar(&w.week, "week", false, "in a week from Monday on, UTC (default: a month)")
	f.BoolVar(&w.month, "month", false, "in a calendar month, UTC (default: a month)")
	f.BoolVar(&w.ever, "total", false, "in all (default: a month)")
}

func (w *window) scopeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.scope, "scope", "all", "whose `jobs`: all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE")
	f.StringVar(&w.team, "team", "", "`name` of a team, for --scope team:NAME (default: as --scope says)")
	f.StringVar(&w.project, "project", "", "`name` of a project, for --scope project:NAME (default: as --scope says)")
	f.StringVar(&w.user, "user", "", "`name` of a user, for --scope user:NAME (default: as --scope says)")
	f.StringVar(&w.tag, "tag", "", "a tag as `KEY=VALUE`, for --scope tag:KEY=VALUE (default: as --scope says)")
}

// flag returns the flag that names the scope.
func (w *window) flag() string {
	kind, _, _ := strings.Cut(w.scope, ":")
	if map[string]string{"team": w.team, "project": w.project, "user": w.user, "tag": w.tag}[kind] != "" {
		return "--" + kind
	}
	return "--scope"
}

// limit returns the limit that the flags name: one scope and one window.
func (w *window) limit(cmd *cobra.Command) (budget.Limit, error) {
	l := budget.Limit{Window: budget.Month}
	for _, names := range [][]string{{"day", "week", "month", "total"}, {"scope", "team", "project", "user", "tag"}} {
		var given []string
		for _, n := range names {
			if cmd.Flags().Changed(n) {
				given = append(given, "--"+n)
			}
		}
		if len(given) > 1 {
			return l, fmt.Errorf("%s exclude each other: give one, and set a limit for each", strings.Join(given, " and "))
		}
	}
	switch {
	case w.day:
		l.Window = budget.Day
	case w.week:
		l.Window = budget.Week
	case w.ever:
		l.Window = budget.Total
	}
	// At most one of them is set.
	for kind, name := range map[string]string{"team": w.team, "project": w.project, "user": w.user, "tag": w.tag} {
		if name != "" {
			w.scope = kind + ":" + name
		}
	}
	var err error
	l.Scope, err = budget.ParseScope(w.scope)
	return l, err
}

// limitFlags holds the values of a limit.
type limitFlags struct {
	dollars, approve, notify string
	gpuHours, within         string
	jobs, running, gpus      int
	wait                     bool
	warn                     []string
}

func (a *app) budgetsSetCmd() *cobra.Command {
	var w window
	var limits limitFlags
	cmd := &cobra.Command{Use: "set", Short: "Make a limit, or change one", Args: command.Takes(),
		Long: "Sets the limit of a scope in a window. A job under a limit of dollars " +
			"needs a budget, or work and a price from which the most that it costs is known: that becomes its budget. " +
			"At each share of --warn, when all is spent, and when a job waits for approval, the webhook of --notify gets a " +
			"POST; when all is spent, what runs is saved and stopped. " +
			"Jobs over --running or --gpus wait in the queue, and those of others pass them." + command.PlainExit,
		Example: "  scrimp budgets set --team vision --month --dollars 500 --warn 0.8\n" +
			"  scrimp budgets set --user ann --day --jobs 4\n  scrimp budgets set --tag env=dev --week --dollars 50\n" +
			"  scrimp budgets set --team vision --running 4 --gpus 16\n" +
			"  scrimp budgets set --week --gpu-hours 200 --wait --approve 100",
	}
	w.flags(cmd)
	limits.flags(cmd)
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, _ []string) error {
		l, err := w.limit(cmd)
		if err != nil {
			return err
		}
		if err := limits.fill(&l, cmd.Flags().Changed); err != nil {
			return err
		}
		if err := l.Check(); err != nil {
			return err
		}
		err = a.putBudget(ctx, c, api.SetBudget{Limit: convert.To[*api.Limit](&l)}, "Budget "+l.Name()+" is set.")
		return command.InFlags(err, map[string]string{"limit.scope": w.flag()})
	})
	return cmd
}

func (x *limitFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&x.dollars, "dollars", "", "`amount` that may be spent (default: not limited)")
	f.StringVar(&x.gpuHours, "gpu-hours", "", "`hours` of one GPU that may be used (default: not limited)")
	f.IntVar(&x.jobs, "jobs", 0, "`number` of jobs that may wait or run at once (default: not limited)")
	f.IntVar(&x.running, "running", 0, "`number` of jobs that may hold a machine at once; more wait in the queue "+
		"(default: not limited)")
	f.IntVar(&x.gpus, "gpus", 0, "`number` of GPUs that may be in use at once; more wait in the queue (default: not "+
		"limited)")
	f.BoolVar(&x.wait, "wait", false, "let a job wait for the next window where the GPU-hours do not suffice (default: "+
		"refuse it)")
	f.StringVar(&x.approve, "approve", "", "`amount` above which a job waits for scrimp approve (default: never)")
	f.StringVar(&x.within, "approve-within", "", "`span` after which a job that nobody has approved is "+
		"given up, as in 2d (default: 7d)")
	f.StringArrayVar(&x.warn, "warn", nil, "`share` of the dollars at which to warn, 0 to 1; may be repeated (default: "+
		"at the limit only)")
	f.StringVar(&x.notify, "notify", "", "`URL` that gets the warnings, and hears of jobs that wait for approval "+
		"(default: the server's log only)")
}

// fill sets the given values of a limit; the others stay unlimited.
func (x *limitFlags) fill(l *budget.Limit, changed func(flag string) bool) error {
	for _, v := range []struct {
		flag, text string
		to         **money.Amount
	}{{"dollars", x.dollars, &l.Dollars}, {"approve", x.approve, &l.Approve}} {
		if v.text == "" {
			continue
		}
		amount, err := money.Parse(strings.TrimPrefix(v.text, "$"))
		if err != nil {
			return fmt.Errorf("--%s %s: %w: write it as in 500 or 12.50", v.flag, v.text, err)
		}
		*v.to = &amount
	}
	if x.gpuHours != "" {
		hours, err := strconv.ParseFloat(x.gpuHours, 64)
		if err != nil {
			return fmt.Errorf("--gpu-hours %s is not a number: write it as in 200 or 12.5", x.gpuHours)
		}
		l.GPUHours = &hours
	}
	for _, text := range x.warn {
		share, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("--warn %s is not a share: write it as in 0.8", text)
		}
		l.Warn = append(l.Warn, share)
	}
	for _, v := range []struct {
		flag string
		n    *int
		to   **int
	}{{"jobs", &x.jobs, &l.Jobs}, {"running", &x.running, &l.Running}, {"gpus", &x.gpus, &l.GPUs}} {
		if changed(v.flag) {
			*v.to = v.n
		}
	}
	if x.within != "" {
		var err error
		if l.ApproveWithin, err = spec.ParseDuration(x.within); err != nil {
			return fmt.Errorf("--approve-within %s: %w: write it as in 36h or 2d", x.within, err)
		}
	}
	l.Wait, l.Notify = x.wait, x.notify
	return nil
}

func (a *app) budgetsRmCmd() *cobra.Command {
	return &cobra.Command{Use: "rm BUDGET", Short: "Remove a limit", Args: command.Takes("BUDGET"),
		Long:    "Removes a limit by its name, as scrimp budgets lists it." + command.PlainExit,
		Example: "  scrimp budgets rm team:vision/month",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.putBudget(ctx, c, api.SetBudget{Remove: args[0]}, "Budget "+args[0]+" is removed.")
		})}
}

func (a *app) budgetsShareCmd() *cobra.Command {
	var off bool
	cmd := &cobra.Command{Use: "share TEAM", Short: "Let the members of a team use each other's machines",
		Args: command.Takes("TEAM"),
		Long: "A machine that waits for a job, or has a part to spare, is for jobs of the same user alone. With this it is " +
			"for all jobs of the team, on machines where programs run as users of their own (docs/agent.md)." +
			command.PlainExit,
		Example: "  scrimp budgets share vision\n  scrimp budgets share vision --off",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			done := "The members of team " + args[0] + " may use each other's machines."
			if off {
				done = "The machines of team " + args[0] + " are for the same user's next job alone."
			}
			return a.putBudget(ctx, c, api.SetBudget{Share: args[0], Off: off}, done)
		})}
	cmd.Flags().BoolVar(&off, "off", false, "no longer (default: from now on)")
	return cmd
}

func (a *app) budgetsTagCmd() *cobra.Command {
	var free bool
	cmd := &cobra.Command{Use: "tag KEY [VALUE ...]", Short: "Require a tag of every job, or free them of it",
		Args: command.Takes("KEY", "[VALUE ...]"),
		Long: "Requires that every job that is submitted from now on has the tag, with one of the values, or with any " +
			"where none is given." + command.PlainExit,
		Example: "  scrimp budgets tag env dev prod\n  scrimp budgets tag ticket\n  scrimp budgets tag env --free",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if free && len(args) > 1 {
				return errors.New("--free takes no values: leave them out")
			}
			done := "Jobs must have the tag " + args[0] + "."
			if free {
				done = "Jobs need no tag " + args[0] + "."
			}
			return a.putBudget(ctx, c, api.SetBudget{Tag: args[0], Values: args[1:], Free: free}, done)
		})}
	cmd.Flags().BoolVar(&free, "free", false, "no longer require it (default: require it)")
	return cmd
}
