// Package fair shares a queue among teams by weight, in dollars: what a team spent lately, with decay, and what its
// running jobs are expected to cost decide which team starts the next job.
package fair

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Bounds of the settings.
const (
	// DefaultWeight is the weight of a team that nobody has set.
	DefaultWeight = 1.0
	LeastWeight   = 0.001
	MostWeight    = 1000.0

	// DefaultHalfLife is the time in which what a team spent counts half.
	DefaultHalfLife = 7 * 24 * time.Hour
	LeastHalfLife   = time.Hour
	MostHalfLife    = 365 * 24 * time.Hour

	// MostTeams is the largest number of teams with a setting.
	MostTeams = 1000
)

// Rules are the admin's settings. Without rules, the queue does not regard teams.
type Rules = budget.Fair

// Team is the setting of one team.
type Team = budget.FairTeam

// Key returns the name under which a team is counted, because names that differ only in case are the same team.
func Key(team string) string { return strings.ToLower(team) }

// Clone returns a copy of r that shares nothing with it; nil remains nil.
func Clone(r *Rules) *Rules {
	if r == nil {
		return nil
	}
	return &Rules{HalfLife: r.HalfLife, Teams: slices.Clone(r.Teams)}
}

// Flat returns the rules with the same weight for all teams.
func Flat(r *Rules) *Rules {
	v := Clone(r)
	for i := range v.Teams {
		v.Teams[i].Weight = DefaultWeight
	}
	return v
}

// Of returns the setting of a team, and whether it has one.
func Of(r *Rules, team string) (Team, bool) {
	for _, t := range r.Teams {
		if Key(t.Name) == Key(team) {
			return t, true
		}
	}
	return Team{Name: team, Weight: DefaultWeight}, false
}

// Set returns the rules with the setting of one team, which replaces its former one. r may be nil.
func Set(r *Rules, t Team) *Rules {
	v := Remove(r, t.Name)
	if v == nil {
		v = &Rules{HalfLife: DefaultHalfLife}
		if r != nil {
			v.HalfLife = r.HalfLife
		}
	}
	v.Teams = append(v.Teams, t)
	slices.SortFunc(v.Teams, func(a, b Team) int { return strings.Compare(Key(a.Name), Key(b.Name)) })
	return v
}

// Remove returns the rules without the setting of a team, or nil if no setting is left.
func Remove(r *Rules, team string) *Rules {
	v := Clone(r)
	if v == nil {
		return nil
	}
	v.Teams = slices.DeleteFunc(v.Teams, func(t Team) bool { return Key(t.Name) == Key(team) })
	if len(v.Teams) == 0 {
		return nil
	}
	return v
}

// Wrong is an error about one field of a setting.
type Wrong struct{ Field, Cause, Fix string }

func (w *Wrong) Error() string { return w.Cause + ": " + w.Fix }

// Check returns an error for the first setting that is out of bounds, or if the teams' guarantees together exceed what
// the server's own budget allows an hour. r may be nil.
func Check(r *Rules, limits []budget.Limit) error {
	if r == nil {
		return nil
	}
	if r.HalfLife < LeastHalfLife || r.HalfLife > MostHalfLife {
		return &Wrong{"half_life_ns", fmt.Sprintf("the half-life %v is out of bounds", r.HalfLife), "write 1h to 365d"}
	}
	if len(r.Teams) > MostTeams {
		return &Wrong{"team", fmt.Sprintf("%d teams have a setting", len(r.Teams)),
			fmt.Sprintf("set %d at most, and leave the others at the weight 1", MostTeams)}
	}
	var sum money.Rate
	for _, t := range r.Teams {
		if err := checkTeam(t); err != nil {
			return err
		}
		sum = quantity.Add(sum, t.Guarantee)
	}
	if most, of, ok := RateOf(limits); ok && sum > most {
		return &Wrong{"guarantee", fmt.Sprintf("the teams' guarantees are $%s an hour together, and the budget %s allows "+
			"$%s an hour", sum, of, most), "lower a guarantee, or raise the budget with scrimp budgets set"}
	}
	return nil
}

func checkTeam(t Team) error {
	switch {
	case t.Name == "":
		return &Wrong{"team", "the team is missing", "name one, as scrimp teams lists them"}
	case !(t.Weight >= LeastWeight && t.Weight <= MostWeight): // NaN is refused, too
		return &Wrong{"weight", fmt.Sprintf("the weight %g of team %s is out of bounds", t.Weight, t.Name),
			fmt.Sprintf("write %g to %g", LeastWeight, MostWeight)}
	case t.Guarantee < 0 || !quantity.Price.Allows(t.Guarantee.Float()):
		return &Wrong{"guarantee", fmt.Sprintf("the guarantee %s of team %s is out of bounds", t.Guarantee, t.Name),
			"write " + quantity.Price.Range()}
	case t.Borrow != nil && (*t.Borrow < 0 || !quantity.Price.Allows(t.Borrow.Float())):
		return &Wrong{"borrow", fmt.Sprintf("the amount %s that team %s may borrow is out of bounds", *t.Borrow, t.Name),
			"write " + quantity.Price.Range() + ", or leave it out for no limit"}
	}
	return nil
}

// RateOf returns the dollars an hour that the budgets of all jobs allow, and the name of the tightest one; ok is false
// if none limits dollars per window. A month counts as 30 days.
func RateOf(limits []budget.Limit) (most money.Rate, of string, ok bool) {
	hours := map[budget.Window]int{budget.Day: 24, budget.Week: 7 * 24, budget.Month: 30 * 24}
	for _, l := range limits {
		if l.Scope == budget.All && l.Rate != nil && (!ok || *l.Rate < most) {
			most, of, ok = *l.Rate, l.Name(), true
		}
		n := hours[l.Window]
		if l.Scope != budget.All || l.Dollars == nil || n == 0 {
			continue
		}
		an, fits := rateIn(*l.Dollars, n)
		if fits && (!ok || an < most) {
			most, of, ok = an, l.Name(), true
		}
	}
	return most, of, ok
}

// rateIn returns the hourly rate of an amount in a number of hours, or false if it is too large for a rate.
func rateIn(a money.Amount, hours int) (money.Rate, bool) {
	n := a.Over(hours).Big()
	return money.Rate(n.Int64()), n.IsInt64()
}
