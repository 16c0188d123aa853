package purchase

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/commit"
)

// Month is a month of a plan. Demand and the figures derived from it are estimates.
type Month struct {
	Month       string   `json:"month"`
	Held        int64    `json:"held"`
	Buy         int64    `json:"buy"`
	Demand      float64  `json:"demand"` // mean units per hour
	Coverage    *float64 `json:"coverage"`
	Utilisation *float64 `json:"utilisation"`
	Cost        *float64 `json:"cost_percent"`
}

// Drop is the cost of this month's purchase over its term if demand falls right after it.
type Drop struct {
	Fall         float64       `json:"fall"`
	Cost         *float64      `json:"cost_percent"` // null if nothing is left to run
	Regret       *float64      `json:"regret"`
	RegretAmount *money.Amount `json:"regret_amount"` // an estimate, in whole cents; null without a known price
	Utilisation  *float64      `json:"utilisation"`
}

// Plan is the output of scrimp commit plan for one region and one term.
type Plan struct {
	Region    string         `json:"region"`
	Term      string         `json:"term"`
	Kind      string         `json:"kind,omitempty"`
	Years     int            `json:"years"`
	Discount  float64        `json:"discount"`
	Source    string         `json:"source,omitempty"`
	Insure    float64        `json:"insure"`
	Fall      float64        `json:"fall"`
	BuyNow    int64          `json:"buy_now"`
	Currency  money.Currency `json:"currency,omitempty"`
	Owed      *money.Amount  `json:"owed"`             // by this purchase over the term; null without a known price
	Upfront   *money.Amount  `json:"upfront"`          // upfront part of Owed
	AnHour    *money.Amount  `json:"per_hour"`         // hourly part of Owed
	BreakEven *int           `json:"break_even_month"` // null if not within the term, or without a purchase
	Months    []Month        `json:"months"`
	Year      Drop           `json:"year"` // the twelve months with all purchases of the plan
	Falls     []Drop         `json:"falls"`
}

// PlanOf summarizes an outlook. Without terms no price is known.
func PlanOf(o commit.Outlook, p commit.Policy, offer commit.Offer, terms *commit.Terms) Plan {
	v := Plan{Region: o.Region, Term: offer.Name, Kind: offer.Kind, Years: p.Months / 12, Source: offer.Source,
		Discount: discount(p), Insure: p.Insure, Fall: fraction(p.Fall),
		BuyNow: o.Months[0].Buy, Falls: []Drop{}}
	if o.BreakEven > 0 {
		v.BreakEven = &o.BreakEven
	}
	price, _ := p.Price.Float64()
	var demand, served, committed, cost float64
	for _, m := range o.Months {
		level, hours := float64(m.Level()), float64(m.Hours)
		line := Month{Month: m.Name, Held: m.Held, Buy: m.Buy, Demand: m.Demand}
		if m.Demand > 0 {
			line.Coverage = orNull(m.Served/m.Demand, true)
			line.Cost = orNull(100*(m.Demand-m.Served+price*level)/m.Demand, true)
		}
		if level > 0 {
			line.Utilisation = orNull(m.Served/level, true)
		}
		v.Months = append(v.Months, line)
		demand, served = demand+m.Demand*hours, served+m.Served*hours
		committed, cost = committed+level*hours, cost+m.Cost*hours
	}
	v.Year.Cost = orNull(100*cost/demand, demand > 0)
	v.Year.Utilisation = orNull(served/committed, committed > 0)
	for _, f := range o.Falls {
		d := Drop{Fall: fraction(f.Share), Utilisation: orNull(f.Used/f.Committed, f.Committed > 0)}
		if c, r, ok := f.Percent(); ok {
			d.Cost, d.Regret = &c, &r
		}
		if terms != nil {
			regret := wholeCents(f.Regret(terms.OnDemand, p.Price))
			d.RegretAmount = &regret
		}
		v.Falls = append(v.Falls, d)
	}
	if terms != nil {
		all, upfront, hourly := offer.Owed(v.BuyNow)
		owed, once, hour := amount(all), amount(upfront), amount(hourly)
		v.Currency, v.Owed, v.Upfront, v.AnHour = terms.Currency, &owed, &once, &hour
	}
	return v
}

// discount returns the discount of a committed hour.
func discount(p commit.Policy) float64 {
	v, _ := new(big.Rat).Sub(big.NewRat(1, 1), p.Price).Float64()
	return v
}

// wholeCents rounds an estimate to cents; further digits have no meaning.
func wholeCents(v *big.Rat) money.Amount {
	hundred := big.NewRat(100, 1)
	cents, _ := new(big.Rat).SetString(new(big.Rat).Mul(v, hundred).FloatString(0))
	return amount(cents.Quo(cents, hundred))
}

// below formats a discount, which is neither 0 nor 100 %.
func below(discount float64) string {
	switch text := wholePercent(discount); text {
	case "0 %":
		return "under 0.01 %"
	case "100 %":
		return "over 99.99 %"
	default:
		return text
	}
}

// payments describes what the current purchase owes, and when.
func (v Plan) payments() string {
	owed, once := money.Format(*v.Owed, v.Currency, 2), money.Format(*v.Upfront, v.Currency, 2)
	hour := money.Format(*v.AnHour, v.Currency, 4)
	switch {
	case v.AnHour.IsZero():
		return owed + " owed, all of it at once"
	case v.Upfront.IsZero():
		return owed + " owed in all, " + hour + " an hour"
	}
	return owed + " owed in all, " + once + " of it at once and " + hour + " an hour"
}

// Text formats the plan for people.
func (v Plan) Text(p show.Place) string {
	var b strings.Builder
	title := v.Region
	if v.Kind != "" { // otherwise the term is just the discount
		title += ", " + v.Term
	}
	b.WriteString(draw.Wrap("", fmt.Sprintf("%s: %s at %s below on-demand", title, draw.Count(v.Years, "year"),
		below(v.Discount)), p.Columns()) + "\n")
	now := fmt.Sprintf("Buy %s now", draw.Count(int(v.BuyNow), "unit"))
	if v.Owed != nil && v.BuyNow > 0 {
		now += ": " + v.payments()
	}
	now += "."
	switch {
	case v.BreakEven != nil:
		now += fmt.Sprintf(" It has paid off by the end of month %d of %d, if demand goes on.", *v.BreakEven, 12*v.Years)
	case v.BuyNow > 0:
		now += " It does not pay off within its term by itself: later purchases count on it."
	}
	b.WriteString(draw.Wrap("", now, p.Columns()) + "\n")
	var rows [][]string
	for _, m := range v.Months {
		rows = append(rows, []string{m.Month, fmt.Sprint(m.Held), fmt.Sprint(m.Buy), fmt.Sprintf("%.1f", m.Demand),
			percentOf(m.Coverage, 100), percentOf(m.Utilisation, 100), percentOf(m.Cost, 1)})
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "MONTH", Key: true}, {Name: "HELD", Right: true},
		{Name: "BUY", Right: true}, {Name: "DEMAND", Right: true}, {Name: "COVERAGE", Right: true},
		{Name: "USED", Right: true}, {Name: "COST", Right: true}}, rows, p.Columns()) + "\n")
	rows = nil
	for _, d := range v.Falls {
		dollars := "-"
		if d.RegretAmount != nil {
			dollars = money.Format(*d.RegretAmount, v.Currency, 2)
		}
		rows = append(rows, []string{wholePercent(d.Fall), percentOf(d.Cost, 1), percentOf(d.Utilisation, 100),
			percentOf(d.Regret, 1), dollars})
	}
	b.WriteString(draw.Wrap("", fmt.Sprintf("Over the %s of what is bought now, if demand falls right after it:",
		draw.Count(v.Years, "year")), p.Columns()))
	b.WriteString(draw.Grid([]draw.Column{{Name: "FALLS BY", Right: true, Key: true}, {Name: "COST", Right: true},
		{Name: "USED", Right: true}, {Name: "REGRET", Right: true}, {Name: "REGRET IN ALL", Right: true, Leaves: 1}}, rows,
		p.Columns()))
	return b.String()
}

// Terms compares the plans of one region, cheapest first. Terms whose names do not fit are numbered.
func Terms(list []Plan, p show.Place) string {
	var rows [][]string
	for _, v := range list {
		even, half, owed := "-", "-", "-"
		if v.BreakEven != nil {
			even = fmt.Sprintf("month %d", *v.BreakEven)
		}
		for _, d := range v.Falls {
			if d.Fall == 0.5 {
				half = percentOf(d.Regret, 1)
			}
		}
		if v.Owed != nil {
			owed = money.Short(*v.Owed, v.Currency)
		}
		rows = append(rows, []string{v.Term, fmt.Sprint(v.Years), below(v.Discount), fmt.Sprint(v.BuyNow), owed,
			percentOf(v.Year.Cost, 1), even, half})
	}
	return draw.NumberedGrid([]draw.Column{{Name: "TERM", Key: true}, {Name: "YEARS", Right: true, Leaves: 2},
		{Name: "BELOW", Right: true, Leaves: 1}, {Name: "BUY NOW", Right: true}, {Name: "OWED", Right: true},
		{Name: "COST", Right: true}, {Name: "PAID OFF", Right: true}, {Name: "REGRET -50 %", Right: true}}, rows,
		p.Columns())
}
