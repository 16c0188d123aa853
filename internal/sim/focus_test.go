package sim

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/test/focustest"
	"scrimp/internal/test/lane"
)

// exported writes the ledger of a world as a file of FOCUS.
func exported(w *World, v focus.Version) *bytes.Buffer {
	var file bytes.Buffer
	rows, out := focus.NewWriter(v), csv.NewWriter(&file)
	_ = out.Write(rows.Header())
	var room []string
	s := charge.NewStream(charge.Span{}, func(c charge.Charge) {
		room = rows.Row(room[:0], c)
		_ = out.Write(room)
	})
	for i := range w.postings {
		p := &w.postings[i]
		of := core.IdleSourceOf(w.m, p)
		if j, known := w.known(p.Owner.Job); known && p.Owner.Job != "" {
			of = core.SourceOf(j, p)
		}
		s.Add(p, of)
	}
	s.End()
	out.Flush()
	return &file
}

// checkFocus holds the file against the rules of the format, and its sums against the ledger's, computed by a walk.
func checkFocus(t *testing.T, what string, w *World, v focus.Version) focustest.File {
	t.Helper()
	got, broken, err := focustest.Read(exported(w, v), v.String(), "x_Job", "x_Outcome", "BillingCurrency")
	if err != nil || len(broken) > 0 {
		t.Fatalf("%s: %v\n%s", what, err, strings.Join(broken, "\n"))
	}
	want, all := map[string]*big.Int{}, new(big.Int)
	for _, p := range w.postings {
		for _, side := range []struct {
			account ledger.Account
			sign    int64
		}{{p.To, 1}, {p.From, -1}} {
			if _, use, ok := side.account.IsCost(); ok {
				k := fmt.Sprintf("%s,%s,%s", p.Owner.Job, use, p.Currency)
				if want[k] == nil {
					want[k] = new(big.Int)
				}
				part := new(big.Int).Mul(p.Amount.Big(), big.NewInt(side.sign))
				want[k].Add(want[k], part)
				all.Add(all, part)
			}
		}
	}
	for k, sum := range want {
		is := got.By[k]
		if is == nil {
			is = new(big.Rat)
		}
		if is.Cmp(new(big.Rat).SetFrac(sum, big.NewInt(1e12))) != 0 {
			t.Fatalf("%s: %s costs %s in the file and %se-12 in the ledger", what, k, is.FloatString(12), sum)
		}
	}
	if got.Cost.Cmp(new(big.Rat).SetFrac(all, big.NewInt(1e12))) != 0 {
		t.Fatalf("%s: the file has %s, the ledger %se-12", what, got.Cost.FloatString(12), all)
	}
	return got
}

// The ledger of a team's simulated year, with jobs across the ends of months, is a file that keeps the rules of FOCUS
// and adds up to the ledger exactly.
func TestFocus_OfASimulatedTeamAddsUp(t *testing.T) {
	w := year(lane.Pick(60, 1000))
	for _, v := range []focus.Version{focus.V12, focus.V14} {
		got := checkFocus(t, "FOCUS "+v.String(), w, v)
		if got.Rows < 500 || len(got.By) < 100 {
			t.Errorf("there are %d rows in %d groups", got.Rows, len(got.By))
		}
	}
}

// So are those of runs with lost answers, shared machines, late prices, bills that come twice, and clocks that are wrong.
func TestFocus_OfHostileRunsAddsUp(t *testing.T) {
	for seed := range lane.Pick(40, 2000) {
		w := Run(uint64(seed), FaultNone)
		checkFocus(t, fmt.Sprint("seed ", seed), w, focus.V14)
	}
}
