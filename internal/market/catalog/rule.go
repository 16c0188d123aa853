package catalog

import (
	_ "embed" // the rules are part of the program
	"time"

	"scrimp/internal/market"
	"scrimp/internal/market/table"
)

//go:embed rules.csv
var ruleRows string

// Rule holds a provider's billing and notice rules for a kind of capacity.
type Rule struct {
	Provider    string
	Capacity    market.Capacity
	Term        Term // empty for the ordinary terms
	Billing     market.Billing
	Notice      time.Duration
	MaxLifetime time.Duration
	Confidence  string // as for an accelerator
	Source      string
}

var rules = mustRules()

func mustRules() map[string]Rule {
	rows, err := table.Read(ruleRows)
	if err != nil {
		panic("catalog: " + err.Error())
	}
	out := map[string]Rule{}
	for _, r := range rows {
		span := func(name string) time.Duration {
			if r[name] == "" {
				return 0
			}
			d, err := time.ParseDuration(r[name])
			if err != nil {
				panic("catalog: rule of " + r["provider"] + ": " + err.Error())
			}
			return d
		}
		out[r["provider"]+"/"+r["capacity"]+"/"+r["term"]] = Rule{
			Provider: r["provider"], Capacity: market.Capacity(r["capacity"]), Term: Term(r["term"]),
			Confidence: r["confidence"], Source: r["source"] + ", " + r["date"],
			Billing: market.Billing{Minimum: span("minimum"), FreeIfInterruptedWithin: span("free_if_interrupted_within")},
			Notice:  span("notice"), MaxLifetime: span("max_lifetime"),
		}
	}
	return out
}

// RuleOf returns a provider's rules for a kind of capacity, and false if no source states them.
func RuleOf(provider string, c market.Capacity) (Rule, bool) {
	return ruleOn(provider, c, "")
}

// ruleOn is RuleOf for other than the ordinary terms.
func ruleOn(provider string, c market.Capacity, t Term) (Rule, bool) {
	r, ok := rules[provider+"/"+string(c)+"/"+string(t)]
	return r, ok
}
