package simulate

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/benchmark"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/marketfile"
	jobterms "scrimp/internal/server/terms"
)

// simulated is one policy's row of `scrimp simulate`.
type simulated struct {
	Policy        string        `json:"policy"`
	MeanUSD       float64       `json:"mean_usd"`
	OverOptimum   *float64      `json:"over_optimum,omitempty"` // a fraction
	OfOnDemand    *float64      `json:"of_on_demand,omitempty"` // relative to the cost of on-demand
	Misses        int           `json:"misses"`
	Runs          int           `json:"runs"`
	Unfinished    int           `json:"unfinished"`    // of Runs; also misses, and excluded from the costs
	Why           string        `json:"why,omitempty"` // of the first unfinished run
	FinishS       float64       `json:"finish_s"`      // mean of the finished runs, in market seconds
	Interruptions float64       `json:"interruptions"`
	Moves         float64       `json:"moves"`  // mean number of moves to another region
	LostS         float64       `json:"lost_s"` // mean time of paid work that was lost
	LostUSD       float64       `json:"lost_usd"`
	Timeline      string        `json:"timeline,omitempty"` // of the first run
	first         []simPiece    // of the first run
	finish        time.Duration // of the first run
}

// simPiece is a period in which a machine was held.
type simPiece struct {
	from, to time.Duration
	spot     bool
	lost     bool
	offer    string
}

type simulateFlags struct {
	job      jobfile.Flags
	policies func() ([]string, error)
	seeds    int
	restart  time.Duration
	save     time.Duration
	svg      string
	history  bool
	since    string
}

func (a *app) simulateJob(cmd *cobra.Command, args []string, f simulateFlags) error {
	names, err := f.policies()
	if err != nil {
		return err
	}
	trace, err := marketfile.Load(f.job.Market)
	if err != nil {
		return err
	}
	opened := a.Now().UTC().Truncate(time.Second)
	j, _, notes, err := jobfile.Load(spec.Run, args, cmd.ArgsLenAtDash(), f.job, opened)
	if err != nil {
		return err
	}
	jobfile.Note(a.App, notes)
	t := jobterms.Of(j, opened, func(d time.Duration) time.Duration { return d }, nil)
	t.Need.Reads = jobterms.Reads(j, catalog.Catalog{}, map[string]string{"local": "local"})
	if t.Work <= 0 {
		return fmt.Errorf("%s: work.time: missing: a simulated run needs the duration of the work on a "+
			"machine of speed 1, such as time: 6h", args[0])
	}
	if t.Steps == 0 {
		t.Steps = max(1, int64(t.Work/time.Second))
	}
	t.Restart = f.restart
	s := stage{trace: trace, terms: t, opened: opened, restart: f.restart, save: f.save, seeds: f.seeds, notes: []string{}}
	if err := s.survey(args[0]); err != nil {
		return err
	}
	rows, err := a.playPolicies(cmd, &s, names)
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(simulatedSVG(rows, &s)), 0o644); err != nil {
			return fmt.Errorf("write --svg: %w", err)
		}
	}
	if a.JSON {
		err = a.Print(map[string]any{"job": j.Name, "market": trace.Name, "policies": rows, "notes": s.notes})
	} else {
		width := a.Place().Width
		a.Printf("%s: %s of work%s on market %s, %s\n\n%s", j.Name, draw.Span(t.Work), by(t, opened), trace.Name,
			draw.Count(f.seeds, "run"), simulatedTable(rows, &s, width))
		for _, n := range s.notes {
			a.Printf("%s", draw.Wrap("note: ", n, width))
		}
	}
	if err == nil && s.late {
		return command.Infeasible
	}
	return err
}

func by(t core.Terms, opened time.Time) string {
	if t.Deadline.IsZero() {
		return ""
	}
	return " by a deadline in " + draw.Span(t.Deadline.Sub(opened))
}

// errNoMarket reports a missing market file.
var errNoMarket = errors.New("--market: missing: name a market file, or calm or stormy; docs/market-file.md " +
	"describes the form")

func (f *simulateFlags) check(args []string, changed func(flag string) bool) error {
	forJob := len(args) > 0 || f.job.Market != "" || f.seeds != 1 || f.svg != "" || changed("restart") ||
		changed("save") || f.job.Terms.Given()
	switch {
	case f.history && forJob:
		return errors.New("--history simulates the server's own jobs on its own market, with the starts and saves that " +
			"were measured: leave out the job file and its flags, --market, --seeds, --restart, --save, --svg")
	case f.history:
		return nil
	case f.since != "":
		return errors.New("--since goes with --history")
	case len(args) == 0:
		return errors.New("name a job file, as in scrimp simulate job.yaml --market stormy, or one of the benchmarks: " +
			"deadline, zones")
	case len(args) > 1:
		return fmt.Errorf("%q is one argument too many: one job is simulated at a time", args[1])
	}
	return f.checkJob()
}

// checkJob returns an error if a job cannot be played.
func (f *simulateFlags) checkJob() error {
	switch {
	case f.job.Market == "":
		return errNoMarket
	case f.seeds < 1 || f.seeds > 10_000:
		return fmt.Errorf("--seeds %d: give 1 to 10,000 runs", f.seeds)
	case f.restart <= 0 || f.save <= 0:
		return fmt.Errorf("--restart %v and --save %v: give times above zero", f.restart, f.save)
	}
	return nil
}

func (a *app) simulateFlags(cmd *cobra.Command, f *simulateFlags) {
	f.job.Add(cmd)
	f.job.AddTerms(cmd)
	cmd.Flags().Lookup("market").Usage = "market `file`, or calm or stormy (default none: a job file needs one)"
	f.policies = benchmark.PolicyFlag(cmd)
	cmd.Flags().IntVar(&f.seeds, "seeds", 1, "how many submissions, `N`, spread over the market")
	cmd.Flags().DurationVar(&f.restart, "restart", 3*time.Minute, "from launch to a program that works")
	cmd.Flags().DurationVar(&f.save, "save", 10*time.Second, "what a checkpoint takes")
	cmd.Flags().BoolVar(&f.history, "history", false,
		"simulate the server's past jobs on the recorded market (default: a job file)")
	cmd.Flags().StringVar(&f.since, "since", "", "with --history: jobs submitted in this `span` until "+
		"now, as in 30d (default: all)")
	cmd.Flags().StringVar(&f.svg, "svg", "", "draw the first run of every policy into this `file` (default: only in "+
		"the terminal)")
}
