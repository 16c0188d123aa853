package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/protocol"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
)

// playProtocol plays a benchmark by the rules of a protocol file, or a generated market.
func (a *app) playProtocol(ctx context.Context, f zonesFlags, asked []string, note notef) (out zonesPlayed, err error) {
	p, windows, err := a.protocolMarket(&f)
	if err != nil {
		return out, err
	}
	list, without, err := p.Settings(windows)
	if err != nil {
		return out, fmt.Errorf("%s: %w", f.availability, err)
	}
	protocolNotes(p, windows, list, without, note)
	s := replay.Settings{List: list}
	tell := a.Counter()
	if slices.Contains(asked, replay.Optimum) {
		if s.Optima, err = a.settingOptima(ctx, list, f.gang.nodes, tell); err != nil {
			return out, err
		}
	}
	for i := range list {
		list[i].Runs = multizone.OnNodes(list[i].Runs, f.gang.nodes, f.gang.alone)
	}
	by, whole, err := replay.Protocol(ctx, s, asked, a.Now, tell)
	if err != nil {
		return out, err
	}
	out.whole, out.value = whole, protocolResult(by, without, f.gang)
	out.text = f.gang.says(a.Place().Width) + simulation.Scores(whole, a.Place()) + "\n" +
		simulation.Settings(by, asked, a.Place())
	return out, nil
}

// protocolMarket returns the market of the files or the generated one, with its rules.
func (a *app) protocolMarket(f *zonesFlags) (*multizone.Protocol, []multizone.Window, error) {
	if f.generated {
		if f.gang.alone {
			return nil, nil, errors.New("--alone: a generated market counts machines, so it says when some are lost; " +
				"leave --alone out")
		}
		p, windows := multizone.DrawnBenchmark(f.seed)
		multizone.AtLeast(windows, f.gang.nodes)
		return p, windows, nil
	}
	text, err := os.ReadFile(f.protocol)
	if err != nil {
		return nil, nil, fmt.Errorf("read --protocol: %w", err)
	}
	p, err := protocol.Read(f.protocol, text)
	if err != nil {
		return nil, nil, err
	}
	windows, err := a.zoneWindows(f)
	return p, windows, err
}

// protocolNotes notes deviations from the files.
func protocolNotes(p *multizone.Protocol, windows []multizone.Window, list []multizone.Setting, without int,
	note notef) {
	if unknown := p.Ungrouped(windows); len(unknown) > 0 {
		note("nothing runs on %s: the protocol has no group with them\n", strings.Join(unknown, ", "))
	}
	if without > 0 {
		note("%d pairs of group and window left out: the files lack a zone of the group\n", without)
	}
	said := map[string]bool{}
	for i := range list {
		work := list[i].Work()
		if text := fmt.Sprintf("work of %v is played as %v: the optimum counts in steps of %v\n", list[i].Size.Work, work,
			list[i].Grid()); work != list[i].Size.Work && !said[text] {
			said[text] = true
			note("%s", text)
		}
	}
}

// settingOptima returns the optima of the runs for the given number of machines. They do not depend on what a policy
// sees.
func (a *app) settingOptima(ctx context.Context, list []multizone.Setting, nodes int,
	tell func(string, int, int)) ([][]money.Amount, error) {
	var runs []multizone.Run
	first := make([]int, len(list)) // index of a setting's first optimum
	for i, s := range list {
		if i > 0 && s.SameButSight(&list[i-1]) {
			first[i] = first[i-1]
			continue
		}
		first[i] = len(runs)
		runs = append(runs, s.Runs...)
	}
	optima, err := a.zoneOptima(ctx, runs, tell)
	if err != nil {
		return nil, err
	}
	out := make([][]money.Amount, len(list))
	for i, s := range list {
		for k := range s.Runs {
			out[i] = append(out[i], tick.Times(optima[first[i]+k], nodes))
		}
	}
	return out, nil
}

// A settingResult is the JSON of one setting.
type settingResult struct {
	Zones         []string       `json:"zones"`
	WorkHours     float64        `json:"work_hours"` // as in the protocol
	PlayedHours   float64        `json:"played_work_hours"`
	DeadlineHours float64        `json:"deadline_hours"`
	RestartHours  float64        `json:"restart_hours"`
	CheckpointGB  float64        `json:"checkpoint_gb"`
	Sight         string         `json:"sight"`
	Policies      []policyResult `json:"policies"`
}

// A policyResult is the JSON of one policy in a setting. Dollars are statistics: means of exact sums.
type policyResult struct {
	Name          string   `json:"name"`
	MeanUSD       float64  `json:"mean_usd"`
	Misses        int      `json:"misses"`
	Runs          int      `json:"runs"`
	OverOptimum   *float64 `json:"over_optimum,omitempty"`
	MovesPerRun   float64  `json:"moves_per_run"`
	CarriesPerRun float64  `json:"carries_per_run"`
}

func protocolResult(by []replay.SettingScores, without int, gang gangFlags) any {
	out := struct {
		Settings []settingResult `json:"settings"`
		LeftOut  int             `json:"left_out,omitempty"`
		Nodes    int             `json:"nodes"`
		Alone    bool            `json:"alone,omitempty"`
	}{Settings: []settingResult{}, LeftOut: without, Nodes: gang.nodes, Alone: gang.alone}
	for i := range by {
		s := &by[i]
		r := settingResult{Zones: multizone.Names(s.Group), WorkHours: s.Size.Work.Hours(), PlayedHours: s.Work().Hours(),
			DeadlineHours: s.Size.Deadline.Hours(), RestartHours: s.Restart.Hours(), CheckpointGB: s.Checkpoint.GB,
			Sight: string(s.Sight), Policies: []policyResult{}}
		for _, row := range s.Scores {
			r.Policies = append(r.Policies, policyResult{Name: row.Name, MeanUSD: row.MeanUSD, Misses: row.Misses,
				Runs: row.Runs, OverOptimum: row.OverOptimum, MovesPerRun: row.MovesPerRun, CarriesPerRun: row.CarriesPerRun})
		}
		out.Settings = append(out.Settings, r)
	}
	return out
}
