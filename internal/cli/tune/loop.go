package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/search"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/studyfile"
)

// Exit statuses of scrimp tune ask, for loops in a shell.
const (
	isOver command.Exit = 3
	waits  command.Exit = 4
)

func (a *app) askCmd() *cobra.Command {
	var ask client.AskTrial
	cmd := &cobra.Command{Use: "ask study.yaml|SEARCH", Short: "Ask a search what your own loop trains next",
		Long: `Says which configuration your own loop trains next, and until when. With a study file it opens the search
first, unless it is open already: the file has no job, and its budget is usd, trials or both. A worker that asks
again gets its trial again, so a loop that was killed goes on. scrimp tune tell says how the trial has done. The
search rents nothing (docs/tune.md).

Exit status: 0 it names a trial, 1 error, 3 the search is over, 4 nothing to train before another worker
tells a value.`,
		Example: "  scrimp tune ask study.yaml\n  scrimp tune ask mine --worker 1 --json",
		Args:    command.Takes("study.yaml|SEARCH"),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.asks(ctx, c, args[0], ask)
		})}
	cmd.Flags().IntVar(&ask.Worker, "worker", 0, "number of the worker that asks, `N`, from 0 to parallel - 1")
	cmd.Flags().StringVar(&ask.Program, "program", "", programHelp)
	return cmd
}

// programHelp is the help of --program.
const programHelp = "`name` of the running loop, another one for each start, such as $$ in a shell: scrimp then " +
	"notices two loops with one number (default: not checked)"

// asks opens the search of a file, and asks it.
func (a *app) asks(ctx context.Context, c *command.Client, arg string, ask client.AskTrial) error {
	name := arg
	if ext := filepath.Ext(arg); ext == ".yaml" || ext == ".yml" {
		s, notes, err := define(ctx, c, arg)
		if err != nil {
			return err
		}
		for _, n := range notes {
			a.Notef("note: %s\n", n)
		}
		if _, err := c.OpenSearch(ctx, s); err != nil {
			return err
		}
		name = s.Name
	}
	v, err := c.AskSearch(ctx, name, ask)
	if err != nil {
		return err
	}
	if v.Note != "" {
		a.Notef("note: %s\n", v.Note)
	}
	if err := a.Show(v, answerText(v)); err != nil {
		return err
	}
	switch v.Do {
	case "end":
		return isOver
	case "wait":
		return waits
	}
	return nil
}

// define reads the definition of a search from a file. Its name is the file's unless the file says one.
func define(ctx context.Context, c *command.Client, file string) (s client.NewSearch, notes []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, nil, fmt.Errorf("read the study file: %w", err)
	}
	read, err := studyfile.ParseLoop(file, text)
	if err != nil {
		return s, nil, err
	}
	if len(read.Warm) > 0 {
		if err := warmed(ctx, c, file, read); err != nil {
			return s, nil, err
		}
	}
	s = client.NewSearch{Name: read.Name, Study: onWire(read), PerHour: read.PerHour}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if !read.Budget.IsZero() {
		s.Budget = &read.Budget
	}
	return s, read.Notes, nil
}

// tellFlags holds the flags of scrimp tune tell.
type tellFlags struct {
	at, seconds         float64
	usd, value, program string
}

func (a *app) tellCmd() *cobra.Command {
	var f tellFlags
	cmd := &cobra.Command{Use: "tell SEARCH TRIAL VALUE [--at N] [--usd USD | --seconds N]",
		Short: "Tell a search how a trial of your own loop has done",
		Long: `Tells the value of a trial's metric, and prints what the loop does next: continue (train the trial further),
pause (save it and ask: the searcher may return to it) or stop (leave it, and ask). A value that is not a number,
such as nan, ends the trial. The same value again changes nothing; another one for the same epoch is refused.
--at may be any amount, also a fraction, up to the one that scrimp tune ask names; the search decides there. A
negative value follows --value, as in --value -3, or stands after --.` +
			command.PlainExit,
		Example: "  scrimp tune tell mine 3 0.41 --at 2 --seconds 31\n  scrimp tune tell mine 3 nan --at 3 --usd 0.02\n" +
			"  scrimp tune tell mine 3 --value -3.1 --at 2 --seconds 31",
		Args: command.Takes("SEARCH", "TRIAL", "[VALUE]"),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			v, err := f.told(args)
			if err != nil {
				return err
			}
			answer, err := c.TellSearch(ctx, args[0], v)
			if err != nil {
				return err
			}
			return a.Show(answer, answer.Do+"\n")
		})}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if m := negative.FindString(err.Error()); m != "" {
			return fmt.Errorf("%s looks like a flag: write --value %s for a negative VALUE", m, m)
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	cmd.Flags().StringVar(&f.value, "value", "", "`VALUE`, also a negative one (default: the third argument)")
	cmd.Flags().Float64Var(&f.at, "at", 0, "`N` epochs or steps that the trial has trained by then (default: the "+
		"search has no fidelity)")
	cmd.Flags().StringVar(&f.usd, "usd", "", "`USD` that the trial has cost since its value before (default: by "+
		"--seconds and the search's usd_per_hour)")
	cmd.Flags().StringVar(&f.program, "program", "", programHelp)
	cmd.Flags().Float64Var(&f.seconds, "seconds", -1,
		"`N` seconds of training since its value before (default: unknown)")
	return cmd
}

// negative is a negative number in the error for a flag that does not exist.
var negative = regexp.MustCompile(`-(?:[0-9.][0-9.eE+-]*|inf)$`)

// told returns the value that the arguments say.
func (f *tellFlags) told(args []string) (v client.TellTrial, err error) {
	if v.Trial, err = strconv.Atoi(args[1]); err != nil || v.Trial < 0 {
		return v, fmt.Errorf("TRIAL %q: give the number that scrimp tune ask prints", args[1])
	}
	text := f.value
	switch {
	case len(args) == 3 && text != "":
		return v, fmt.Errorf("%q and --value %s: give one value", args[2], text)
	case len(args) == 3:
		text = args[2]
	case text == "":
		return v, errors.New("VALUE is missing: give the metric's value, or --value -3 for a negative one")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return v, fmt.Errorf("VALUE %q: give a number, or nan for a trial that has diverged", text)
	}
	if v.Diverged = math.IsNaN(value) || math.IsInf(value, 0); !v.Diverged {
		v.Value = &value
	}
	if !(f.at >= 0 && f.at <= 1e11) {
		return v, fmt.Errorf("--at %g: give the epochs or steps of training, from 0 to 1e11", f.at)
	}
	v.At, v.Program = f.at, f.program
	if f.seconds != -1 {
		if !(f.seconds >= 0 && f.seconds <= 315_360_000) {
			return v, fmt.Errorf("--seconds %g: give 0 to 315360000", f.seconds)
		}
		v.Seconds = &f.seconds
	}
	if f.usd != "" {
		cost, err := money.Parse(strings.TrimPrefix(f.usd, "$"))
		if err != nil || cost.Sign() < 0 {
			return v, fmt.Errorf("--usd %q: give an amount of dollars, such as 0.25", f.usd)
		}
		v.Cost = &cost
	}
	return v, nil
}

func (a *app) bestCmd() *cobra.Command {
	return &cobra.Command{Use: "best SEARCH", Short: "Show the best trial of a search with its parameters",
		Long: "Shows the best trial of a search with its parameters: of a study, or of a search of your own loop.\n\n" +
			"Exit status: 0 there is one, 1 error, 3 no trial has reported a value (null in JSON).",
		Args: command.Takes("SEARCH"),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if s, unknown := c.Search(ctx, args[0]); unknown == nil {
				return a.best(s.Best, s.Best != nil, bestText(s), noBestTold(s))
			}
			g, err := studyOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			return a.best(g.Study.Best, g.Study.Best != nil, search.Best(g, a.Place()), search.NoBest(g))
		})}
}

// best shows the best trial. Without one it returns an error with the reason and the status 3; text is then empty, or
// the best trial of the proxy.
func (a *app) best(trial any, there bool, text string, why error) error {
	if err := a.Show(trial, text); err != nil || there {
		return err
	}
	return &command.Verdict{Exit: command.JobFailed, Err: why}
}

// noBestTold says why a search of a user's own loop has no best trial.
func noBestTold(s client.Search) error {
	if s.Over != "" {
		return fmt.Errorf("%s: no trial has a value, and the search is over: %s", s.Name, overFor(s))
	}
	return fmt.Errorf("%s: no trial has a value yet: scrimp tune ask %s names the next one to train", s.Name, s.Name)
}

func (a *app) searchesCmd() *cobra.Command {
	return &cobra.Command{Use: "searches", Short: "List the searches of your own loops",
		Long: "Lists the searches whose trials your own loops train, by name. Studies are groups: scrimp groups lists " +
			"those." + command.PlainExit,
		Args: command.Takes(),
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			list, err := c.Searches(ctx)
			if err != nil {
				return err
			}
			return a.Show(list, listText(list))
		})}
}

func (a *app) removeCmd() *cobra.Command {
	return &cobra.Command{Use: "remove SEARCH", Short: "Remove a search of your own loop with its trials",
		Long: "Removes a search whose trials your own loop trains, with its values. It ends no program." +
			command.PlainExit,
		Args: command.Takes("SEARCH"),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return c.RemoveSearch(ctx, args[0])
		})}
}
