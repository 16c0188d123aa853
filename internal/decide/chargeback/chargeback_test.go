package chargeback_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/chargeback"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// draw draws a charge of a month. Some have no team, some no time, some reverse earlier charges.
func draw(rng *rand.Rand) charge.Charge {
	team := fmt.Sprintf("team-%d", rng.IntN(4))
	c := charge.Charge{Begin: begin, End: begin.Add(time.Hour), Currency: money.USD, Category: ledger.Compute, Use: ledger.Useful,
		Phase: ledger.Accrued, Amount: money.Picos(rng.Int64N(1e15) + 1), Owner: ledger.Owner{Team: team, Job: team + "-j", Attempt: "a"}}
	c.Use = []ledger.Use{ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle, ledger.Open}[rng.IntN(5)]
	c.Accelerators = []int{0, 1, 8}[rng.IntN(3)]
	if rng.IntN(3) > 0 {
		c.Timed, c.Time = true, time.Duration(rng.Int64N(int64(time.Hour))+1)
		if rng.IntN(2) == 0 {
			c.ListPrice = ledger.PriceOf(money.Rate(rng.Int64N(1e13)+1), true)
		}
	}
	switch rng.IntN(8) {
	case 0:
		c.Owner = ledger.Owner{}
	case 1:
		c.Owner, c.Use = ledger.Owner{Instance: "i"}, ledger.Idle
	case 2:
		c.Owner, c.Rule, c.Category = ledger.Owner{}, state.ReservedRule, ledger.Fixed
	case 3:
		c.Amount = c.Amount.Neg()
	case 4:
		c.Currency = "EUR"
	case 5:
		c.Category, c.Timed = ledger.Storage, false
	}
	return c
}

// Own costs, shares and the undivided rest add up to the charges and fees exactly, under each rule. Each share is
// within one unit of its weight's part of the pool, computed again as a fraction.
func TestDivide_AddsUpExactly(t *testing.T) {
	shares, err := chargeback.ParseRule("fixed", []string{"team-0=1", "team-2=2.5", "elsewhere=0.000000000001"})
	must.Do(t, err)
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, rule := range []chargeback.Rule{{Kind: chargeback.Proportional}, {Kind: chargeback.Even}, shares} {
			m, want := chargeback.NewMonth(), map[money.Currency]money.Amount{}
			gpu := map[string]*big.Int{} // in USD
			for range rng.IntN(40) {
				c := draw(rng)
				m.Add(&c)
				want[c.Currency] = want[c.Currency].Add(c.Amount)
				if c.Owner.Team != "" && c.Currency == money.USD && c.Timed && c.Category == ledger.Compute {
					n := big.NewInt(int64(c.Time) * int64(c.Accelerators) * int64(c.Amount.Sign()))
					if gpu[c.Owner.Team] == nil {
						gpu[c.Owner.Team] = new(big.Int)
					}
					gpu[c.Owner.Team].Add(gpu[c.Owner.Team], n)
				}
			}
			fee := money.Picos(rng.Int64N(1e14))
			m.AddFee("tracking", fee, money.USD, nil)
			want[money.USD] = want[money.USD].Add(fee)
			got := map[money.Currency]money.Amount{}
			for _, d := range m.Divide(rule) {
				sum := d.Left
				for _, p := range d.Parts {
					sum = sum.Add(p.Amount)
				}
				if sum != d.Pool.Own || len(d.Parts) > 0 && !d.Left.IsZero() || d.Method == "" {
					t.Fatalf("seed %d: %s of %v is divided into %v and %v", seed, d.Pool.Name, d.Pool.Own, d.Parts, d.Left)
				}
				got[d.Pool.Currency] = got[d.Pool.Currency].Add(sum)
				if d.Method == chargeback.ByGPUHours && d.Pool.Currency == money.USD {
					whole := new(big.Int)
					for _, n := range gpu {
						if n.Sign() > 0 {
							whole.Add(whole, n)
						}
					}
					for _, p := range d.Parts {
						if whole.Sign() == 0 { // no team had a GPU in USD
							break
						}
						plain := new(big.Rat).SetFrac(new(big.Int).Mul(d.Pool.Own.Big(), gpu[p.Team]), whole)
						off := new(big.Rat).Sub(plain, new(big.Rat).SetInt(p.Amount.Big()))
						if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
							t.Fatalf("seed %d: %s pays %v of %v, want %s", seed, p.Team, p.Amount, d.Pool.Own, plain.FloatString(2))
						}
					}
				}
			}
			for _, a := range m.Teams() {
				got[a.Currency] = got[a.Currency].Add(a.Own)
				uses, phases := money.Amount{}, money.Amount{}
				for _, v := range a.Uses {
					uses = uses.Add(v)
				}
				for _, v := range a.Phases {
					phases = phases.Add(v)
				}
				if uses != a.Own || phases != a.Own {
					t.Fatalf("seed %d: %s has %v, by use %v, by phase %v", seed, a.Name, a.Own, uses, phases)
				}
			}
			for c, sum := range want {
				if got[c] != sum {
					t.Fatalf("seed %d: %s has %v, the charges %v", seed, c, got[c], sum)
				}
			}
		}
	}
}

func gpuHours(team string, n int, hours time.Duration, cost string) charge.Charge {
	a, _ := money.Parse(cost)
	list, _ := money.ParseRate("4")
	return charge.Charge{Begin: begin, End: begin.Add(hours), Amount: a, Currency: money.USD, Category: ledger.Compute, Use: ledger.Useful,
		Timed: true, Time: hours, ListPrice: ledger.PriceOf(list, true),
		Owner: ledger.Owner{Team: team, Job: team + "-1"}, Source: charge.Source{Accelerators: n}}
}

// One example month: vision has 3 of 4 GPU-hours and pays 3/4 of the shared cost. The rounding remainder of the
// third dollar goes to the team that lost most by truncation.
func TestDivide_MatchesTheExample(t *testing.T) {
	m := chargeback.NewMonth()
	for _, c := range []charge.Charge{gpuHours("vision", 1, 3*time.Hour, "6"), gpuHours("speech", 1, time.Hour, "2.5")} {
		m.Add(&c)
	}
	ten, _ := money.Parse("10")
	m.AddFee("tracking", ten, money.USD, nil)
	for rule, want := range map[chargeback.Kind][2]string{chargeback.Proportional: {"2.5", "7.5"}, chargeback.Even: {"5", "5"}} {
		d := m.Divide(chargeback.Rule{Kind: rule})[0]
		if len(d.Parts) != 2 || d.Parts[0].Team != "speech" || d.Parts[0].Amount.String() != want[0] || d.Parts[1].Amount.String() != want[1] {
			t.Errorf("%s: %+v", rule, d)
		}
	}
	vision := m.Teams()[1]
	per, ok := vision.PerGPUHour()
	saved, has := vision.Saved()
	if !ok || per.String() != "2" || !has || saved.String() != "6" { // 3 h at $4 on-demand are $12
		t.Errorf("%v an hour, %v saved", per, saved)
	}
}

// A cost in a currency that no team used is divided by the teams' use in any currency. If no team has any cost, it
// stays undivided and is not dropped.
func TestDivide_HandlesAnotherCurrencyAndNoTeam(t *testing.T) {
	m := chargeback.NewMonth()
	ten, _ := money.Parse("10")
	m.AddFee("tracking", ten, "EUR", nil)
	if d := m.Divide(chargeback.Rule{Kind: chargeback.Proportional}); len(d) != 1 || d[0].Left != ten || d[0].Method != chargeback.Undivided {
		t.Errorf("%+v", d)
	}
	c := gpuHours("vision", 1, time.Hour, "1")
	m.Add(&c)
	d := m.Divide(chargeback.Rule{Kind: chargeback.Proportional})
	if len(d[0].Parts) != 1 || d[0].Parts[0].Amount != ten || !d[0].Left.IsZero() || len(m.Teams()) != 2 {
		t.Errorf("%+v", d)
	}
	for _, a := range m.Teams() {
		if _, ok := a.PerGPUHour(); ok != (a.Currency == money.USD) {
			t.Errorf("%s: an hour has a price: %v", a.Currency, ok)
		}
	}
}

func TestParseRule_RefusesInvalidRules(t *testing.T) {
	for name, bad := range map[string][]string{"spin": nil, "even": {"a=1"}, "fixed": nil} {
		if _, err := chargeback.ParseRule(name, bad); err == nil {
			t.Errorf("%s %q is taken", name, bad)
		}
	}
	for _, bad := range [][]string{{"a"}, {"=1"}, {"a="}, {"a=x"}, {"a=-1"}, {"a=0"}, {"a=1", "a=2"}, {"a=1e9"}, {"a=0.0000000000001"}, {"a=NaN"},
		slices.Repeat([]string{"a=1"}, 1001)} {
		if _, err := chargeback.ParseRule("fixed", bad); err == nil {
			t.Errorf("%.60q is taken", bad)
		}
	}
}

// A fee with a rule of its own is divided by it, whatever the rule of the statement, and the other pools are not.
func TestDivide_FeeMayHaveARuleOfItsOwn(t *testing.T) {
	ten, _ := money.Parse("10")
	fixed, err := chargeback.ParseRule("fixed", []string{"speech=1", "audio=4"})
	must.Do(t, err)
	for name, c := range map[string]struct {
		spread *chargeback.Rule
		want   string
	}{"none": {nil, "[{speech 2.5} {vision 7.5}]"}, "even": {&chargeback.Rule{Kind: chargeback.Even}, "[{speech 5} {vision 5}]"},
		"fixed": {&fixed, "[{audio 8} {speech 2}]"}} {
		m := chargeback.NewMonth()
		for _, c := range []charge.Charge{gpuHours("vision", 1, 3*time.Hour, "6"), gpuHours("speech", 1, time.Hour, "2.5")} {
			m.Add(&c)
		}
		m.AddFee("a", ten, money.USD, c.spread)
		m.AddFee("b", ten, money.USD, nil)
		list := m.Divide(chargeback.Rule{Kind: chargeback.Proportional})
		if got := fmt.Sprint(list[0].Parts); got != c.want || fmt.Sprint(list[1].Parts) != "[{speech 2.5} {vision 7.5}]" {
			t.Errorf("%s: %s, and the other %v", name, got, list[1].Parts)
		}
	}
}
