package chargeback

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
)

// Kind is a method to divide shared cost.
type Kind string

// The rules.
const (
	Proportional Kind = "proportional" // by GPU-hours, or by machine hours if no GPU ran
	Even         Kind = "even"         // each team with a cost pays the same
	Fixed        Kind = "fixed"        // by configured shares
)

// Share is the weight of a team in a fixed rule.
type Share struct {
	Team   string
	Weight *big.Int // of 1e-12
}

// Rule is a method with its shares.
type Rule struct {
	Kind   Kind
	Shares []Share // by team; of Fixed only
}

// mostTeams bounds the shares of a rule.
const mostTeams = 1000

// mostWeight bounds the weight of a team.
var mostWeight, _ = decimal.Parse("1000000")

// ParseRule reads a rule. Shares have the form TEAM=WEIGHT and are for a fixed rule only.
func ParseRule(kind string, shares []string) (Rule, error) {
	r := Rule{Kind: Kind(kind)}
	if kind == "" {
		r.Kind = Proportional
	}
	switch {
	case !slices.Contains([]Kind{Proportional, Even, Fixed}, r.Kind):
		return r, fmt.Errorf("%.40q is not a rule", kind)
	case r.Kind != Fixed && len(shares) > 0:
		return r, fmt.Errorf("the rule %s takes no shares", r.Kind)
	case r.Kind == Fixed && len(shares) == 0:
		return r, errors.New("the rule fixed needs shares")
	case len(shares) > mostTeams:
		return r, fmt.Errorf("%d shares are more than %d", len(shares), mostTeams)
	}
	all := new(big.Int)
	for _, text := range shares {
		share, err := parseShare(text)
		if err != nil {
			return r, err
		}
		if slices.ContainsFunc(r.Shares, func(s Share) bool { return s.Team == share.Team }) {
			return r, fmt.Errorf("%.60s has two shares", share.Team)
		}
		r.Shares = append(r.Shares, share)
		all.Add(all, share.Weight)
	}
	if r.Kind == Fixed && all.Sign() == 0 {
		return r, errors.New("all shares are zero")
	}
	slices.SortFunc(r.Shares, func(a, b Share) int { return strings.Compare(a.Team, b.Team) })
	return r, nil
}

// parseShare reads TEAM=WEIGHT.
func parseShare(text string) (Share, error) {
	at := strings.LastIndexByte(text, '=')
	if at < 1 {
		return Share{}, fmt.Errorf("%.60q is no share", text)
	}
	team, weight := text[:at], text[at+1:]
	d, err := decimal.Parse(weight)
	if err != nil {
		return Share{}, fmt.Errorf("the share of %.60s: %.40q is not a number", team, weight)
	}
	w, fits := d.Amount()
	if !fits || decimal.OfAmount(w).Cmp(d) != 0 || d.Sign() < 0 || d.Cmp(mostWeight) > 0 {
		return Share{}, fmt.Errorf("the share of %.60s is not a number from 0 to 1000000 with up to 12 decimals: %.40q", team,
			weight)
	}
	return Share{team, w.Big()}, nil
}

// Part is the amount that a team pays of a pool.
type Part struct {
	Team   string
	Amount money.Amount
}

// Division splits a pool among teams. Parts and Left add up to the pool's cost exactly.
type Division struct {
	Pool   *Account
	Parts  []Part // by team
	Left   money.Amount
	Method string // how it was divided, or why it was not
}

// The methods of a division.
const (
	ByGPUHours     = "proportional by GPU-hours"
	ByMachineHours = "proportional by machine hours"
	ByCost         = "proportional by own cost"
	ByHead         = "even"
	ByShares       = "fixed shares"
	Undivided      = "not divided: no team has a cost"
)

// Divide divides every pool by the rule, or by the pool's own. A team that pays without a cost of its own gets an
// account.
func (m *Month) Divide(r Rule) (list []Division) {
	for _, p := range m.Pools() {
		d := Division{Pool: p, Left: p.Own}
		var names []string
		var weights []*big.Int
		by := r
		if p.spread != nil {
			by = *p.spread
		}
		if names, weights, d.Method = m.weights(by, p.Currency); len(names) > 0 {
			parts, _ := ledger.Allocate(p.Own, weights) // some weight is above zero
			d.Left = money.Amount{}
			for i, name := range names {
				account(m.teams, name, p.Currency)
				d.Parts = append(d.Parts, Part{name, parts[i]})
			}
		}
		list = append(list, d)
	}
	return list
}

// weights returns the weights of a rule for a cost in a currency: from the teams' accounts in that currency, or
// from those in any currency if no team has an account in it.
func (m *Month) weights(r Rule, c money.Currency) (names []string, weights []*big.Int, method string) {
	if r.Kind == Fixed {
		for _, s := range r.Shares {
			names, weights = append(names, s.Team), append(weights, s.Weight)
		}
		return names, weights, ByShares
	}
	type measure struct {
		method string
		of     func(*Account) *big.Int
	}
	measures := []measure{{ByHead, func(*Account) *big.Int { return big.NewInt(1) }}}
	if r.Kind == Proportional {
		measures = []measure{{ByGPUHours, func(a *Account) *big.Int { return a.GPUTime }},
			{ByMachineHours, func(a *Account) *big.Int { return a.Time }}}
	}
	for _, any := range []bool{false, true} {
		for _, how := range measures {
			if names, weights = m.weigh(how.of, c, any); len(names) > 0 {
				if r.Kind == Even {
					for i := range weights {
						weights[i] = big.NewInt(1) // a team with two currencies pays once
					}
				}
				return names, weights, how.method
			}
		}
	}
	if r.Kind == Proportional { // only disks and fees; amounts in different currencies do not compare
		if names, weights = m.weigh(func(a *Account) *big.Int { return a.Own.Big() }, c, false); len(names) > 0 {
			return names, weights, ByCost
		}
	}
	return nil, nil, Undivided
}

// weigh lists the teams with a positive measure.
func (m *Month) weigh(of func(*Account) *big.Int, c money.Currency, other bool) (names []string, weights []*big.Int) {
	for _, a := range m.Teams() {
		w := of(a)
		if a.Currency != c && !other || w.Sign() <= 0 || a.idle() {
			continue
		}
		if n := len(names); n > 0 && names[n-1] == a.Name {
			weights[n-1] = new(big.Int).Add(weights[n-1], w)
			continue
		}
		names, weights = append(names, a.Name), append(weights, w)
	}
	return names, weights
}

// idle reports whether the account has no cost of its own, as an account created by Divide.
func (a *Account) idle() bool { return a.Own.IsZero() && len(a.Uses) == 0 }
