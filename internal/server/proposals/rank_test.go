package proposals

import (
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

func proposed(id, state string, cost, value int64) client.Proposal {
	usd := func(n int64) money.Amount { return money.Picos(n * 1e12) }
	p := client.Proposal{ID: id, State: state, Currency: money.USD}
	if cost >= 0 {
		p.Cost = &[3]money.Amount{{}, usd(cost), usd(2 * cost)}
	}
	if value >= 0 {
		p.Value = new(usd(value))
	}
	return p
}

// Only proposals that wait and whose cost and value are known have a rank; those without one are not worth $0.
func TestRank_LeavesOutWhatIsUnknownOrOver(t *testing.T) {
	t.Parallel()
	euro := proposed("euro", "held", 1, 100)
	euro.Currency = "EUR"
	v := client.Proposals{Currency: money.USD, Budget: new(money.Picos(100e12)), Proposals: []client.Proposal{
		proposed("over", "succeeded", 1, 100), proposed("wide", "held", 80, 240), proposed("words", "held", 10, -1), euro,
		proposed("unplanned", "held", -1, 50), proposed("good", "held", 30, 120), proposed("half", "held", 60, 180),
	}}
	rank(&v)
	got := ""
	for _, p := range v.Proposals {
		got += p.ID + " "
	}
	// good is worth $4 a dollar, half and wide $3. Of the sets within $100, good and half are worth $300, wide $240.
	if want := "good half wide words euro unplanned over "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i, want := range []struct {
		rank int
		fits bool
		per  float64
	}{{1, true, 4}, {2, true, 3}, {3, false, 3}} {
		if p := v.Proposals[i]; *p.Rank != want.rank || *p.Fits != want.fits || *p.PerDollar != want.per {
			t.Errorf("%s: %d %v %v", p.ID, *p.Rank, *p.Fits, *p.PerDollar)
		}
	}
	for _, p := range v.Proposals[3:] {
		if p.Rank != nil || p.Fits != nil || p.PerDollar != nil {
			t.Errorf("%s has a rank", p.ID)
		}
	}
	if !v.Exact || v.Cost != money.Picos(90e12) || v.Value != money.Picos(300e12) {
		t.Errorf("%v for %v", v.Value, v.Cost)
	}
}
