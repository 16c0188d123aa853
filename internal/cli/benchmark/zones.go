package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
)

func (a *app) zonesCmd() *cobra.Command {
	var f zonesFlags
	cmd := &cobra.Command{
		Use:   "zones {--availability FILE --prices FILE | --generated SEED}",
		Short: "Compare policies of where to run over several zones",
		Long: `Plays the public benchmark with several zones: one V100, ticks of 195 s, 48 h of work by 52 h or 24 h by
36 or 48 h, 3 or 12 min to restart, on-demand at $3.06/h, live spot prices, and a checkpoint that takes
90 s and $1 to another region, over ten groups of zones. In form A every zone is seen in every tick, in
form B the held one and one other that the policy asks about. Every policy decides through the production
core; the optimum knows the future, takes minutes, and is kept in the user's cache folder. --nodes 4 runs a
job on four machines at once, each with a checkpoint of the same size; --nodes 1,2,4,8,16 compares the numbers.

--protocol FILE (YAML) plays another market by its own rules: ticks, jobs, restarts, checkpoints and what moving
them costs, on-demand prices by zone or region, what a policy sees, the guard, and the groups of zones.

Files: availability (window,zone,start_tick,ticks,available) and prices (window,zone,start_tick,ticks,
usd_per_hour), CSV with a header. available is 0 or 1, or how many machines can be had: then --nodes N needs N
of them.

--generated SEED replaces the files by a generated market: thirteen zones on four continents, on-demand prices
that differ by 30 %, spot at 0.15 to 0.85 of them, losses common to a region, and counts of machines. It plays
24 h of work by 26, 32 and 46 h, 10 min to restart and 100 GB to move, over 3, 5 and 13 zones, in sights A, B
and C. The same seed draws the same market.

Exit status: 0 done, 1 a file is missing or not in its form.`,
		Example: `  scrimp simulate zones --availability up.csv --prices spot.csv --policy default,on-demand
  scrimp simulate zones --protocol market.yaml --availability up.csv --prices spot.csv --json
  scrimp simulate zones --generated 1 --nodes 1,4,16 --policy default,on-demand`,
		Args: cobra.NoArgs,
	}
	names := PolicyFlag(cmd)
	cmd.Flags().StringVar(&f.availability, "availability", "", "CSV `file` of when spot was available, run-length coded "+
		"(default none: give it, or --generated)")
	cmd.Flags().StringVar(&f.prices, "prices", "", "CSV `file` of the spot prices, run-length coded "+
		"(default none: give it, or --generated)")
	cmd.Flags().StringVar(&f.protocol, "protocol", "", "YAML `file` of the rules (default: the public benchmark)")
	cmd.Flags().StringSliceVar(&f.forms, "form", []string{"A", "B"}, "what a policy sees: `A`, B or both")
	cmd.Flags().Uint64Var(&f.seed, "generated", 0, "`seed` of a generated market, instead of files (default none)")
	cmd.MarkFlagsOneRequired("availability", "generated")
	cmd.MarkFlagsRequiredTogether("availability", "prices")
	cmd.MarkFlagsMutuallyExclusive("protocol", "form", "generated")
	cmd.MarkFlagsMutuallyExclusive("availability", "generated")
	cmd.Flags().IntSliceVar(&f.numbers, "nodes", []int{1},
		fmt.Sprintf("how many machines, `N`, the job has at once, 1 to %d, or several such numbers", tick.MostNodes))
	f.gang.addAlone(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := names()
		if err := errors.Join(err, f.check()); err != nil {
			return err
		}
		f.generated = cmd.Flags().Changed("generated")
		return a.playZones(cmd.Context(), f, asked)
	}
	return cmd
}

// zonesFlags holds the flags of simulate zones.
type zonesFlags struct {
	availability, prices, protocol string
	forms                          []string
	seed                           uint64
	generated                      bool  // seed is given
	numbers                        []int // of machines, to play one after the other
	gang                           gangFlags
}

// check checks the numbers of machines and the forms.
func (f *zonesFlags) check() error {
	for i, n := range f.numbers {
		gang := gangFlags{nodes: n, alone: f.gang.alone}
		if err := gang.check(); err != nil {
			return err
		}
		if slices.Contains(f.numbers[:i], n) {
			return fmt.Errorf("--nodes: %d is there twice; give each number once", n)
		}
	}
	for _, form := range f.forms {
		if form != "A" && form != "B" {
			return fmt.Errorf("--form %q is neither A nor B", form)
		}
	}
	return nil
}

// zonesPlayed is the result for one number of machines.
type zonesPlayed struct {
	whole []replay.Score // over all runs of a form
	value any            // for --json
	text  string
}

// playZones plays the market once for each number of machines. It prints the whole result of a single number, and
// compares several in one table.
func (a *app) playZones(ctx context.Context, f zonesFlags, asked []string) error {
	var list []simulation.GangScores
	for i, n := range f.numbers {
		f.gang.nodes = n
		play := a.playPublic
		if f.protocol != "" || f.generated {
			play = a.playProtocol
		}
		note := a.Notef
		if i > 0 { // the notes are the same for each number
			note = func(string, ...any) {}
		}
		p, err := play(ctx, f, asked, note)
		if err != nil {
			return err
		}
		switch {
		case a.JSON:
			if err := a.Print(p.value); err != nil {
				return err
			}
		case len(f.numbers) == 1:
			a.Printf("%s", p.text)
		}
		list = append(list, simulation.GangScores{Nodes: n, Scores: p.whole})
	}
	if len(list) > 1 && !a.JSON {
		a.Printf("%s", simulation.ByNodes(list, asked, a.Place()))
	}
	return nil
}

// notef prints a note.
type notef func(format string, args ...any)

// playPublic plays the public benchmark.
func (a *app) playPublic(ctx context.Context, f zonesFlags, asked []string, note notef) (p zonesPlayed, err error) {
	windows, err := a.zoneWindows(&f)
	if err != nil {
		return p, err
	}
	if unknown := multizone.Public().Ungrouped(windows); len(unknown) > 0 {
		note("nothing runs on %s: the benchmark has no group with them\n", strings.Join(unknown, ", "))
	}
	rows, without, err := zoneRows(windows, f.forms, note)
	if err != nil {
		return p, fmt.Errorf("%s: %w", f.availability, err)
	}
	tell := a.Counter()
	var optima []money.Amount
	if slices.Contains(asked, replay.Optimum) && len(rows) > 0 {
		if optima, err = a.zoneOptima(ctx, rows[0].Runs, tell); err != nil {
			return p, err
		}
	}
	for i := range optima { // the stored ones are for one machine
		optima[i] = tick.Times(optima[i], f.gang.nodes)
	}
	for i := range rows {
		rows[i].Runs = multizone.OnNodes(rows[i].Runs, f.gang.nodes, f.gang.alone)
	}
	if p.whole, err = replay.SeveralZones(ctx, rows, optima, asked, a.Now, tell); err != nil {
		return p, err
	}
	p.value = scoresResult(p.whole, without, f.gang)
	p.text = f.gang.says(a.Place().Width) + simulation.Scores(p.whole, a.Place())
	return p, nil
}

// zoneWindows reads the availability and price files. If the files count machines, spot is up where there are enough
// for the job.
func (a *app) zoneWindows(f *zonesFlags) ([]multizone.Window, error) {
	windows, err := readZones(f.availability, f.prices)
	if err != nil {
		return nil, err
	}
	if multizone.AtLeast(windows, f.gang.nodes) && f.gang.alone {
		return nil, fmt.Errorf("--alone: %s counts machines, so it says when some are lost; leave --alone out",
			f.availability)
	}
	return windows, nil
}

// zoneRows returns the runs of each form, and the number of pairs of group and window that the files lack a zone for.
func zoneRows(windows []multizone.Window, forms []string, note notef) (rows []replay.ZoneRow, without int, err error) {
	for _, f := range forms {
		if slices.ContainsFunc(rows, func(r replay.ZoneRow) bool { return r.Form == f }) {
			continue
		}
		runs, left, err := multizone.Runs(windows, f == "B")
		if err != nil {
			return nil, 0, err
		}
		if left > 0 && len(rows) == 0 {
			note("%d pairs of group and window left out: the files lack a zone of the group\n", left)
		}
		without = left
		rows = append(rows, replay.ZoneRow{Form: f, Runs: runs})
	}
	return rows, without, nil
}

// zoneOptima returns the optima. The first computation takes minutes; the result is stored in the user's cache folder.
func (a *app) zoneOptima(ctx context.Context, runs []multizone.Run,
	tell func(string, int, int)) ([]money.Amount, error) {
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "scrimp")
	}
	var mu sync.Mutex
	optima, err := multizone.Optima(ctx, runs, cache, func(done, of int) {
		mu.Lock()
		defer mu.Unlock()
		tell(replay.Optimum, done, of)
	})
	if errors.Is(err, multizone.ErrNotKept) {
		a.Notef("%v\n", err)
		return optima, nil
	}
	return optima, err
}

func readZones(availability, prices string) ([]multizone.Window, error) {
	af, err := os.Open(availability)
	if err != nil {
		return nil, fmt.Errorf("read --availability: %w", err)
	}
	defer func() { _ = af.Close() }()
	pf, err := os.Open(prices)
	if err != nil {
		return nil, fmt.Errorf("read --prices: %w", err)
	}
	defer func() { _ = pf.Close() }()
	return multizone.Read(availability, af, prices, pf)
}
