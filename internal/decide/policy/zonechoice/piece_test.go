package zonechoice_test

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/costtogo"
	"scrimp/internal/decide/policy/zonechoice/hazard"
)

// filled builds the missing tables of a shelf before each answer, as its owner would.
type filled struct {
	*zonechoice.Foresight
	pieces []costtogo.Piece
}

func (f *filled) fill(v zonechoice.View) {
	if want, ok := f.Missing(v); ok {
		f.pieces = append(f.pieces, want)
		f.Shelf.Adopt(costtogo.Build(want))
	}
}

func (f *filled) Decide(v zonechoice.View) zonechoice.Choice { f.fill(v); return f.Foresight.Decide(v) }
func (f *filled) Poll(v zonechoice.View) int                 { f.fill(v); return f.Foresight.Poll(v) }

// Jobs that share a shelf, even one with room for a single table, decide as each would alone.
func TestShelf_AdoptedTablesAnswerTheSame(t *testing.T) {
	small, large := costtogo.NewShelf(1), costtogo.NewShelf(64<<20)
	for seed := range uint64(6) {
		m := generate(seed, 1+int(seed%4), time.Duration(1+seed%3)*time.Hour, seed%2 == 1)
		want := m.play(&zonechoice.Foresight{Job: &m.job})
		for name, shelf := range map[string]*costtogo.Shelf{"small": small, "large": large} {
			p := &filled{Foresight: &zonechoice.Foresight{Job: &m.job, Shelf: shelf}}
			if got := m.play(p); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d, %s shelf:\n%v\n%v", seed, name, got, want)
			}
			if len(p.pieces) < 5 {
				t.Errorf("seed %d, %s shelf: only %d pieces were missing", seed, name, len(p.pieces))
			}
		}
	}
}

// A table that the shelf evicted is missing again.
func TestShelf_EvictedTableIsMissingAgain(t *testing.T) {
	m := generate(1, 3, 2*time.Hour, false)
	view := func(left time.Duration) zonechoice.View {
		return zonechoice.View{
			Now: time.Unix(0, 0).UTC(), Left: left, Prices: m.price,
			Seen: make([]zonechoice.Sight, 3), Past: make([]hazard.Record, 3),
		}
	}
	f := &filled{Foresight: &zonechoice.Foresight{Job: &m.job, Shelf: costtogo.NewShelf(1)}}
	a, b := view(6*time.Hour), view(3*time.Hour)
	for i, v := range []zonechoice.View{a, a, b, b, a} {
		_, missing := f.Missing(v)
		if missing != (i%2 == 0) {
			t.Errorf("question %d: missing %v", i, missing)
		}
		f.fill(v)
	}
}
