package horizon_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy/horizon"
)

// drawState draws a state of a job on any market.
func drawState(rng *rand.Rand) horizon.State {
	var w horizon.Watch
	at := time.Unix(0, 0).UTC()
	for i := range rng.IntN(30) {
		w = w.See(at, i%2 == 0)
		at = at.Add(time.Duration(1+rng.ExpFloat64()*90) * time.Minute)
	}
	s := horizon.State{Until: time.Duration(rng.IntN(9*60)) * time.Minute, Market: w.At(at)}
	s.Left = time.Duration(1 + rng.Int64N(int64(s.Until)+1))
	if s.Held = horizon.Held(rng.IntN(3)); s.Held != horizon.None {
		s.Owed = time.Duration(rng.IntN(2)*rng.IntN(12)) * time.Minute
	}
	return s
}

// A shelf filled from outside decides like one that builds its own tables, and builds nothing.
func TestShelf_AdoptedTablesDecideTheSame(t *testing.T) {
	p := horizon.For(9*time.Hour, 12*time.Minute, 10*time.Minute, 0.33, 1)
	own, filled := horizon.New(p, horizon.Public), horizon.NewShelf(horizon.Public, 4)
	adopted := 0
	for seed := range uint64(400) {
		s := drawState(rand.New(rand.NewPCG(seed, 5)))
		if want, ok := filled.Missing(p, s.Market); ok {
			filled.Adopt(horizon.Build(want, horizon.Public))
			adopted++
		}
		if want, ok := filled.Missing(p, s.Market); ok {
			t.Fatalf("seed %d: %+v is missing after it was adopted", seed, want)
		}
		solver := filled.Solver(p)
		if a, b := own.Decide(s), solver.Decide(s); a != b {
			t.Fatalf("seed %d: %+v, with adopted tables %+v", seed, a, b)
		}
		if solver.Made > 0 {
			t.Fatalf("seed %d: a table is made within a decision", seed)
		}
	}
	if adopted < 5 {
		t.Errorf("only %d pieces were missing", adopted)
	}
}

func TestShelf_EvictedPieceIsMissingAgain(t *testing.T) {
	shelf := horizon.NewShelf(horizon.Public, 2)
	var asked []horizon.Piece
	for _, deadline := range []time.Duration{2 * time.Hour, 3 * time.Hour, 4 * time.Hour} {
		p := horizon.For(deadline, 5*time.Minute, 10*time.Minute, 0.33, 1)
		want, ok := shelf.Missing(p, horizon.Market{})
		if !ok {
			t.Fatalf("%v: nothing is missing on an empty shelf", deadline)
		}
		asked = append(asked, want)
		shelf.Adopt(horizon.Build(want, horizon.Public))
	}
	for i, p := range asked {
		want, ok := shelf.Missing(p.Problem, horizon.Market{})
		if ok != (i == 0) || ok && want != p {
			t.Errorf("of three on a shelf for two number %d: missing %v, %+v", i, ok, want)
		}
	}
	sum := func() string {
		h := sha256.New()
		horizon.Build(asked[0], horizon.Public).Sum(h)
		return string(h.Sum(nil))
	}
	if first, again := sum(), sum(); first != again {
		t.Error("the same piece is built twice and differs")
	}
}
