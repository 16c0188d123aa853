package show_test

import (
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/bills"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/work/reconcile"
)

func TestReconcile_IsReadAtEightyColumns(t *testing.T) {
	d := func(s string) decimal.Decimal { return decimal.OfAmount(amount(s)) }
	v := reconcile.Answer{Totals: []reconcile.Total{{Currency: money.USD, File: d("545"), Matched: reconcile.Sum{Count: 2, Amount: d("45")},
		NotOurs: reconcile.Sum{Count: 9, Amount: d("500")}, Ours: d("60"), NotBilled: reconcile.Sum{Count: 1, Amount: d("20")}, Gap: d("5"),
		Parts: map[reconcile.Part]decimal.Decimal{reconcile.Price: d("5")}}},
		Gaps: []reconcile.Gap{{Instance: "i-0a\x1b[2J", Currency: money.USD, Ours: d("20"), Billed: d("25"), Gap: d("5"), By: "id",
			Parts: map[reconcile.Part]decimal.Decimal{reconcile.Price: d("5")}}},
		NotBilled: []reconcile.Alone{{Resource: "i-0b", Amount: d("20"), Currency: money.USD, Why: "no line of the bill is of this machine"}}}
	text := bills.Reconcile(v, show.Place{Width: 80, Now: now})
	golden.Check(t, "reconcile.80.txt", text)
	for l := range strings.Lines(text) {
		if len([]rune(strings.TrimSuffix(l, "\n"))) > 80 {
			t.Errorf("too wide: %s", l)
		}
	}
}
