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

// exported writes the ledger of a world as a FOCUS file.
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

// checkExport verifies that the exported FOCUS file keeps the format's rules and adds up exactly to the ledger, by job
// and outcome. A walk through the postings computes the expected sums.
func (w *World) checkExport(v focus.Version) focustest.File {
	got, broken, err := focustest.Read(exported(w, v), v.String(), "x_Job", "x_Outcome", "BillingCurrency")
	if err != nil || len(broken) > 0 {
		w.breaks("export: %v %s", err, strings.Join(broken, ", "))
		return got
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
			w.breaks("export: %s costs %s in the file and %se-12 in the ledger", k, is.FloatString(12), sum)
		}
	}
	if got.Cost.Cmp(new(big.Rat).SetFrac(all, big.NewInt(1e12))) != 0 {
		w.breaks("export: the file has %s, the ledger %se-12", got.Cost.FloatString(12), all)
	}
	return got
}

// The ledger of a team's 1,000 simulated jobs, some across a month's end, exports to a valid file. TestInvariants checks
// runs with lost answers, shared machines, late prices, repeated bills and wrong clocks.
func TestFocus_SimulatedJobsAddUp(t *testing.T) {
	lane.Nightly(t, "a thousand jobs take 10 s of CPU time")
	w := teamOf(1000, 45, 3)
	for _, v := range []focus.Version{focus.V12, focus.V14} {
		got := w.checkExport(v)
		if got.Rows < 6000 || len(got.By) < 3000 {
			t.Errorf("%v: there are %d rows in %d groups", v, got.Rows, len(got.By))
		}
	}
	for _, b := range w.Broken {
		t.Error(b)
	}
}
