package onezone_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/policy/onezone"
)

// drawState draws a state of a job on any market.
func drawState(rng *rand.Rand) onezone.State {
	var w onezone.Watch
	at := time.Unix(0, 0).UTC()
	for i := range rng.IntN(30) {
		w = w.See(at, i%2 == 0)
		at = at.Add(time.Duration(1+rng.ExpFloat64()*90) * time.Minute)
	}
	s := onezone.State{Until: time.Duration(rng.IntN(9*60)) * time.Minute, Market: w.At(at)}
	s.Left = time.Duration(1 + rng.Int64N(int64(s.Until)+1))
	if s.Held = onezone.Held(rng.IntN(3)); s.Held != onezone.None {
		s.Owed = time.Duration(rng.IntN(2)*rng.IntN(12)) * time.Minute
	}
	return s
}

// A shelf filled from outside decides like one that builds its own tables, and builds nothing.
func TestShelf_AdoptedTablesDecideTheSame(t *testing.T) {
	p := onezone.For(9*time.Hour, 12*time.Minute, 10*time.Minute, 0.33, 1)
	own, filled := onezone.New(p, onezone.Public), onezone.NewShelf(onezone.Public, 4)
	adopted := 0
	for seed := range uint64(400) {
		s := drawState(rand.New(rand.NewPCG(seed, 5)))
		if want, ok := filled.Missing(p, s.Market); ok {
			filled.Adopt(onezone.Build(want, onezone.Public))
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
	shelf := onezone.NewShelf(onezone.Public, 2)
	var asked []onezone.Piece
	for _, deadline := range []time.Duration{2 * time.Hour, 3 * time.Hour, 4 * time.Hour} {
		p := onezone.For(deadline, 5*time.Minute, 10*time.Minute, 0.33, 1)
		want, ok := shelf.Missing(p, onezone.Market{})
		if !ok {
			t.Fatalf("%v: nothing is missing on an empty shelf", deadline)
		}
		asked = append(asked, want)
		shelf.Adopt(onezone.Build(want, onezone.Public))
	}
	for i, p := range asked {
		want, ok := shelf.Missing(p.Problem, onezone.Market{})
		if ok != (i == 0) || ok && want != p {
			t.Errorf("of three on a shelf for two number %d: missing %v, %+v", i, ok, want)
		}
	}
	sum := func() string {
		h := sha256.New()
		onezone.Build(asked[0], onezone.Public).Sum(h)
		return string(h.Sum(nil))
	}
	if first, again := sum(), sum(); first != again {
		t.Error("the same piece is built twice and differs")
	}
}
