package multizone

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

func TestOptimum_EqualsPublishedFigures(t *testing.T) {
	lane.Nightly(t, "it takes minutes where no optimum is kept")
	runs, _, err := Runs(publicZones(t), false)
	must.Do(t, err)
	folder, err := os.UserCacheDir()
	must.Do(t, err)
	began := time.Now()
	all, err := Optima(t.Context(), runs, filepath.Join(folder, "scrimp"), func(done, of int) {
		if done%40 == 0 {
			fmt.Println(done, "of", of, time.Since(began).Round(time.Second))
		}
	})
	must.Do(t, err)
	sum := 0.0
	for _, a := range all {
		sum += a.Float()
	}
	if got := sum / float64(len(all)); math.Abs(got-37.952) > 0.0011 {
		t.Errorf("optimum %.4f instead of 37.952", got)
	}
}

// smallRun returns a run that is small enough for an exhaustive search.
func smallRun(chance *rand.Rand) *Run {
	unit := 15 * time.Second
	r := &Run{Job: zonechoice.Job{
		Tick: 13 * unit, Restart: time.Duration(chance.IntN(30)) * unit, Transfer: time.Duration(chance.IntN(12)) * unit,
		Carry: money.Picos(int64(chance.IntN(300_000))), Work: time.Duration(1+chance.IntN(60)) * unit, Deadline: 7 * 13 * unit,
	}}
	for i := range 1 + chance.IntN(3) {
		tr := &Trace{}
		for range 7 {
			tr.Up = append(tr.Up, chance.IntN(3) > 0)
			tr.Price = append(tr.Price, money.Rate(1+chance.IntN(4_000_000)))
		}
		r.Traces = append(r.Traces, tr)
		r.Job.Zones = append(r.Job.Zones, zonechoice.Zone{Name: fmt.Sprint("z", i), Region: fmt.Sprint("r", chance.IntN(2)), OnDemand: 3_000_000})
	}
	return r
}

// tryAll returns the lowest cost from v on, using only the rules of Play.
func tryAll(r *Run, v zonechoice.View, cost money.Amount) (money.Amount, bool) {
	if v.Left == 0 {
		return cost, true
	}
	if v.Tick == r.Job.Ticks() {
		return cost, false
	}
	v.Prices, v.Seen, v.Past = make([]money.Rate, len(r.Traces)), make([]zonechoice.Sight, len(r.Traces)), make([]hazard.Record, len(r.Traces))
	r.show(&v)
	choices := []zonechoice.Choice{{}}
	for z := range r.Traces {
		choices = append(choices, zonechoice.Choice{Kind: zonechoice.OnDemand, Zone: z})
		if v.Seen[z] == zonechoice.Up {
			choices = append(choices, zonechoice.Choice{Kind: zonechoice.Spot, Zone: z})
		}
	}
	var best money.Amount
	found := false
	for _, c := range choices {
		w, out := v, Outcome{Cost: cost}
		r.hold(&w, c, &out)
		w.Tick++
		if got, ok := tryAll(r, w, out.Cost); ok && (!found || got.Cmp(best) < 0) {
			best, found = got, true
		}
	}
	return best, found
}

func TestOptimum_EqualsExhaustiveSearch(t *testing.T) {
	feasible := 0
	for seed := range uint64(60) {
		r := smallRun(rand.New(rand.NewPCG(seed, 1)))
		if len(r.Traces) == 3 {
			r.Job.Deadline = 6 * r.Job.Tick
		}
		want, ok := tryAll(r, zonechoice.View{Left: r.Job.Work}, money.Amount{})
		got, on := r.Optimum()
		if ok != on || ok && got != want {
			t.Fatalf("seed %d: %v (%v), by trying everything %v (%v)", seed, got, on, want, ok)
		}
		if ok {
			feasible++
		}
	}
	if feasible < 30 {
		t.Errorf("only %d of 60 runs could be on time", feasible)
	}
}

func TestOptima_ReusesFileOnlyForSameRuns(t *testing.T) {
	chance, folder := rand.New(rand.NewPCG(3, 1)), t.TempDir()
	r := smallRun(chance)
	r.Job.Work = r.Job.Tick
	first, err := Optima(t.Context(), []Run{*r}, folder, nil)
	must.Do(t, err)
	asked := 0
	again, err := Optima(t.Context(), []Run{*r}, folder, func(int, int) { asked++ })
	if err != nil || again[0] != first[0] || asked != 0 {
		t.Errorf("%v after %v, %d solved again, %v", again, first, asked, err)
	}
	r.Traces[0].Price[0]++
	if _, err := Optima(t.Context(), []Run{*r}, folder, func(int, int) { asked++ }); err != nil || asked != 1 {
		t.Errorf("another price: %d solved, %v", asked, err)
	}
}

// Optima that took minutes to compute are returned even if they cannot be stored.
func TestOptima_ReportsStorageFailure(t *testing.T) {
	r := smallRun(rand.New(rand.NewPCG(3, 1)))
	r.Job.Work = r.Job.Tick
	want, err := Optima(t.Context(), []Run{*r}, "", nil)
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	got, err := Optima(t.Context(), []Run{*r}, file, nil) // a file instead of a folder
	if !errors.Is(err, ErrNotKept) || len(got) != 1 || got[0] != want[0] {
		t.Errorf("%v with %v, want %v and that it is not kept", got, err, want)
	}
}

func TestOptima_StopsWhenCancelled(t *testing.T) {
	r := smallRun(rand.New(rand.NewPCG(3, 1)))
	r.Job.Work = r.Job.Tick
	ctx, stop := context.WithCancelCause(t.Context())
	enough, solved := errors.New("enough"), 0
	_, err := Optima(ctx, slices.Repeat([]Run{*r}, 500), "", func(done, _ int) {
		solved = done
		stop(enough)
	})
	if !errors.Is(err, enough) || solved > 100 {
		t.Errorf("%v after %d of 500", err, solved)
	}
}
