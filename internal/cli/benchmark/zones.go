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

	"scrimp/internal/lib/money"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
)

func (a *app) zonesCmd() *cobra.Command {
	var f zonesFlags
	cmd := &cobra.Command{
		Use:   "zones --availability FILE --prices FILE",
		Short: "Compare policies of where to run over several zones",
		Long: `Plays the public benchmark with several zones: one V100, ticks of 195 s, 48 h of work by 52 h or 24 h by
36 or 48 h, 3 or 12 min to restart, on-demand at $3.06/h, live spot prices, and a checkpoint that takes
90 s and $1 to another region, over ten groups of zones. In form A every zone is seen in every tick, in
form B the held one and one other that the policy asks about. Every policy decides through the production
core; the optimum knows the future, takes minutes, and is kept in the user's cache folder. --nodes 4 runs a
job on four machines at once, each of which has as much to carry.

--protocol FILE (YAML) plays another market by its own rules: ticks, jobs, restarts, checkpoints and what moving
them costs, on-demand prices by zone or region, what a policy sees, the guard, and the groups of zones.

Files: availability (window,zone,start_tick,ticks,available) and prices (window,zone,start_tick,ticks,
usd_per_hour), CSV with a header. available is 0 or 1, or how many machines can be had: then --nodes N needs N
of them.

Exit status: 0 done, 1 a file is missing or not in its form.`,
		Example: `  scrimp simulate zones --availability up.csv --prices spot.csv --policy default,on-demand
  scrimp simulate zones --protocol market.yaml --availability up.csv --prices spot.csv --json`,
		Args: cobra.NoArgs,
	}
	names := PolicyFlag(cmd)
	cmd.Flags().StringVar(&f.availability, "availability", "", "CSV `file` of when spot was available, run-length coded")
	cmd.Flags().StringVar(&f.prices, "prices", "", "CSV `file` of the spot prices, run-length coded")
	cmd.Flags().StringVar(&f.protocol, "protocol", "", "YAML `file` of the rules (default: the public benchmark)")
	cmd.Flags().StringSliceVar(&f.forms, "form", []string{"A", "B"}, "what a policy sees: `A`, B or both")
	_ = cmd.MarkFlagRequired("availability")
	_ = cmd.MarkFlagRequired("prices")
	cmd.MarkFlagsMutuallyExclusive("protocol", "form")
	f.gang.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := names()
		if err := errors.Join(err, f.gang.check()); err != nil {
			return err
		}
		if f.protocol != "" {
			return a.playProtocol(cmd.Context(), f, asked)
		}
		return a.playPublic(cmd.Context(), f, asked)
	}
	return cmd
}

// zonesFlags holds the flags of simulate zones.
type zonesFlags struct {
	availability, prices, protocol string
	forms                          []string
	gang                           gangFlags
}

// playPublic plays the public benchmark.
func (a *app) playPublic(ctx context.Context, f zonesFlags, asked []string) error {
	for _, form := range f.forms {
		if form != "A" && form != "B" {
			return fmt.Errorf("--form %q is neither A nor B", form)
		}
	}
	windows, err := a.zoneWindows(&f)
	if err != nil {
		return err
	}
	if unknown := multizone.Public().Ungrouped(windows); len(unknown) > 0 {
		a.Notef("nothing runs on %s: the benchmark has no group with them\n", strings.Join(unknown, ", "))
	}
	rows, without, err := a.zoneRows(windows, f.forms)
	if err != nil {
		return fmt.Errorf("%s: %w", f.availability, err)
	}
	tell := a.Counter()
	var optima []money.Amount
	if slices.Contains(asked, replay.Optimum) && len(rows) > 0 {
		if optima, err = a.zoneOptima(ctx, rows[0].Runs, tell); err != nil {
			return err
		}
	}
	for i := range optima { // the stored ones are for one machine
		optima[i] = tick.Times(optima[i], f.gang.nodes)
	}
	for i := range rows {
		rows[i].Runs = multizone.OnNodes(rows[i].Runs, f.gang.nodes, f.gang.alone)
	}
	scores, err := replay.SeveralZones(ctx, rows, optima, asked, a.Now, tell)
	if err != nil {
		return err
	}
	return a.scores(scores, without, f.gang)
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
func (a *app) zoneRows(windows []multizone.Window, forms []string) (rows []replay.ZoneRow, without int, err error) {
	for _, f := range forms {
		if slices.ContainsFunc(rows, func(r replay.ZoneRow) bool { return r.Form == f }) {
			continue
		}
		runs, left, err := multizone.Runs(windows, f == "B")
		if err != nil {
			return nil, 0, err
		}
		if left > 0 && len(rows) == 0 {
			a.Notef("%d pairs of group and window left out: the files lack a zone of the group\n", left)
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
