package fair_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/money"
	_ "scrimp/internal/test/sameseed"
)

var start = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// What is left of an amount equals the amount times two to the power of minus the half-lives since, whatever they are.
func TestSpent_HalvesPerHalfLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := money.Picos(rapid.Int64Range(-1e18, 1e18).Draw(t, "amount"))
		halfLife := time.Duration(rapid.Int64Range(int64(fair.LeastHalfLife), int64(fair.MostHalfLife)).Draw(t, "half-life"))
		since := time.Duration(rapid.Int64Range(0, int64(10*365*24*time.Hour)).Draw(t, "since"))
		left := fair.Spent{At: start, Amount: amount}.In(start.Add(since), halfLife)
		want := amount.Float() * math.Exp2(-float64(since)/float64(halfLife))
		if math.Abs(left.Float()-want) > 2e-6*math.Abs(want)+1e-11 {
			t.Fatalf("%v is left of %v after %v of %v, want %v", left, amount, since, halfLife, want)
		}
	})
}

// After whole half-lives the result is exact.
func TestSpent_IsExactAtHalfLives(t *testing.T) {
	s := fair.Spent{At: start, Amount: money.Picos(80e12)}
	for n, want := range []int64{80e12, 40e12, 20e12, 10e12} {
		if got := s.In(start.Add(time.Duration(n)*time.Hour), time.Hour); got != money.Picos(want) {
			t.Errorf("after %d half-lives %v is left, want %v", n, got, money.Picos(want))
		}
	}
}

// The order in which amounts of different times arrive does not matter.
func TestSpent_SumsAmountsOfAnyTime(t *testing.T) {
	early, late := start, start.Add(36*time.Hour)
	one := fair.Spent{}.Add(money.Picos(5e12), early, 24*time.Hour).Add(money.Picos(3e12), late, 24*time.Hour)
	two := fair.Spent{}.Add(money.Picos(3e12), late, 24*time.Hour).Add(money.Picos(5e12), early, 24*time.Hour)
	if one != two || one.At != late {
		t.Errorf("%+v, and in the other order %+v", one, two)
	}
}

// A setting out of bounds is refused with the field and a fix.
func TestCheck_RefusesSettingsOutOfBounds(t *testing.T) {
	rate := func(r money.Rate) *money.Rate { return &r }
	dollars := money.Picos(48e12)
	daily := []budget.Limit{{Scope: budget.All, Window: budget.Day, Dollars: &dollars}} // $2 an hour
	for _, c := range []struct {
		name, field string
		halfLife    time.Duration
		teams       []fair.Team
		limits      []budget.Limit
	}{
		{"weight 0", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a"}}, nil},
		{"negative weight", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: -1}}, nil},
		{"no number", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: math.NaN()}}, nil},
		{"infinite weight", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: math.Inf(1)}}, nil},
		{"huge weight", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: 1e300}}, nil},
		{"tiny weight", "weight", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: 1e-300}}, nil},
		{"no team", "team", fair.DefaultHalfLife, []fair.Team{{Weight: 1}}, nil},
		{"negative guarantee", "guarantee", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: 1, Guarantee: -1}}, nil},
		{"huge guarantee", "guarantee", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: 1, Guarantee: 2e18}}, nil},
		{"negative limit", "borrow", fair.DefaultHalfLife, []fair.Team{{Name: "a", Weight: 1, Borrow: rate(-1)}}, nil},
		{"no half-life", "half_life_ns", 0, []fair.Team{{Name: "a", Weight: 1}}, nil},
		{"long half-life", "half_life_ns", 366 * 24 * time.Hour, []fair.Team{{Name: "a", Weight: 1}}, nil},
		{"guarantees above the budget", "guarantee", fair.DefaultHalfLife,
			[]fair.Team{{Name: "a", Weight: 1, Guarantee: 15e11}, {Name: "b", Weight: 1, Guarantee: 6e11}}, daily},
	} {
		var wrong *fair.Wrong
		err := fair.Check(&fair.Rules{HalfLife: c.halfLife, Teams: c.teams}, c.limits)
		if !errors.As(err, &wrong) || wrong.Field != c.field || wrong.Fix == "" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	fits := []fair.Team{{Name: "a", Weight: 1, Guarantee: 15e11}, {Name: "b", Weight: 1, Guarantee: 5e11}}
	if err := fair.Check(&fair.Rules{HalfLife: fair.DefaultHalfLife, Teams: fits}, daily); err != nil {
		t.Errorf("guarantees of $2 an hour under a budget of $48 a day: %v", err)
	}
}

// The order of teams is a total order that does not depend on the order of the input, and the parts add up to 1.
func TestShares_OrderIsTotalAndPartsAddUp(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		rules := &fair.Rules{HalfLife: fair.DefaultHalfLife}
		uses := map[string]*fair.Use{}
		for _, name := range names {
			if rapid.Bool().Draw(t, "set") {
				rules.Teams = append(rules.Teams, fair.Team{Name: name, Weight: rapid.Float64Range(0.001, 1000).Draw(t, "weight"),
					Guarantee: money.Rate(rapid.Int64Range(0, 9e12).Draw(t, "guarantee"))})
			}
			uses[name] = &fair.Use{Spent: money.Picos(rapid.Int64Range(0, 1e15).Draw(t, "spent")), Running: 1,
				Burn: money.Rate(rapid.Int64Range(0, 9e12).Draw(t, "burn")), Waits: rapid.Bool().Draw(t, "waits")}
		}
		s := fair.NewShares(rules, uses)
		wanted, had := 0.0, 0.0
		for _, x := range s.List() {
			wanted, had = wanted+x.Wanted, had+x.Had
		}
		if math.Abs(wanted-1) > 1e-9 || had != 0 && math.Abs(had-1) > 1e-9 {
			t.Fatalf("the parts add up to %v and %v", wanted, had)
		}
		order := slices.Clone(names)
		slices.SortStableFunc(order, s.Compare)
		for i := range order {
			for k := i + 1; k < len(order); k++ {
				if s.Compare(order[i], order[k]) > 0 || s.Compare(order[k], order[i]) < 0 {
					t.Fatalf("%s and %s are in no order", order[i], order[k])
				}
			}
		}
	})
}

// Names that differ in case are one team, and a setting replaces the former one.
func TestSet_ReplacesTheSettingOfATeam(t *testing.T) {
	r := fair.Set(fair.Set(nil, fair.Team{Name: "Vision", Weight: 1}), fair.Team{Name: "vision", Weight: 3})
	if len(r.Teams) != 1 || r.Teams[0].Weight != 3 || r.HalfLife != fair.DefaultHalfLife {
		t.Errorf("%+v", r)
	}
	if left := fair.Remove(r, "VISION"); left != nil {
		t.Errorf("%+v is left of the rules", left)
	}
	if s := fair.NewShares(r, nil); s.Of("VISION").Weight != 3 || !strings.EqualFold(s.Of("VISION").Name, "vision") {
		t.Error("a team in another case has another share")
	}
}
