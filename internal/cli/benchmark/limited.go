package benchmark

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/decide/fair"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/queue"
)

// checkRate returns an error for flags that do not go with --rate.
func (f *pastFlags) checkRate(changed func(flag string) bool) error {
	if !changed("rate") {
		if changed("weight") {
			return errors.New("--weight changes nothing where each job starts at once: add --rate, the dollars an hour of all " +
				"machines")
		}
		return nil
	}
	for _, name := range []string{"policy", "deadline-factor"} {
		if changed(name) {
			return fmt.Errorf("--rate replays the server's own queue, with a machine for each job: leave out --%s", name)
		}
	}
	return nil
}

// limit parses --rate.
func (f *pastFlags) limit() (money.Rate, error) {
	rate, err := spec.ParsePrice(f.rate)
	if err != nil || rate <= 0 {
		return 0, fmt.Errorf("--rate %q: write dollars an hour above zero, as in 40 or 12.50", f.rate)
	}
	return rate, nil
}

// weighted parses --weight.
func (f *pastFlags) weighted() (map[string]float64, error) {
	weights, named := map[string]float64{}, map[string]bool{}
	for _, text := range f.weights {
		team, number, _ := strings.Cut(text, "=")
		w, err := strconv.ParseFloat(number, 64)
		if team == "" || err != nil || !(w >= fair.LeastWeight && w <= fair.MostWeight) {
			return nil, fmt.Errorf("--weight %q: write TEAM=NUMBER, the number from %g to %g, as in vision=2", text,
				fair.LeastWeight, fair.MostWeight)
		}
		if named[fair.Key(team)] {
			return nil, fmt.Errorf("--weight %q: the team has a weight already: name it once", text)
		}
		named[fair.Key(team)], weights[team] = true, w
	}
	return weights, nil
}

// replayLimited replays the jobs of the server's log in its own queue, under a limit of dollars an hour: once with the
// weights of --weight, and once with the same weight for all teams.
func (a *app) replayLimited(ctx context.Context, f pastFlags) error {
	rate, err := f.limit()
	if err != nil {
		return err
	}
	weights, err := f.weighted()
	if err != nil {
		return err
	}
	h, err := a.pastQueue(ctx, &f)
	if err != nil {
		return err
	}
	pools, left := queue.Pools(h.jobs, h.sales)
	if len(pools) == 0 {
		return h.nothing(left)
	}
	answer := simulation.LimitedReplay{Rate: rate.Float(), Exact: rate}
	answer.History, answer.Jobs = h.describe(pools, left)
	for team := range weights {
		if !h.has(team) {
			return fmt.Errorf("--weight %s=%g: no job of that team is replayed: check the name, or leave it out", team,
				weights[team])
		}
	}
	replay := func(weights map[string]float64) ([]queue.Share, error) {
		rules, err := queue.Weighted(rate, weights)
		if err != nil {
			return nil, err
		}
		list, _ := queue.Limited(h.jobs, h.sales, rules)
		return list, nil
	}
	list, err := replay(weights)
	if err != nil {
		return err
	}
	equal := list
	if len(weights) > 0 {
		same := map[string]float64{}
		for team := range weights {
			same[team] = fair.DefaultWeight
		}
		if equal, err = replay(same); err != nil {
			return err
		}
	}
	for i := range list {
		answer.Teams = append(answer.Teams, simulation.TeamShareOf(&list[i], &equal[i], weights))
	}
	return a.Show(answer, answer.Text(a.Place()))
}

// has reports whether a job of the team is replayed.
func (h *pastQueue) has(team string) bool {
	for i := range h.jobs {
		if fair.Key(h.jobs[i].Team) == fair.Key(team) {
			return true
		}
	}
	return false
}
