package purchase

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/own"
	"scrimp/internal/work/sheet"
)

// ROI is the output of scrimp roi. null means unknown or never.
type ROI struct {
	Name       string         `json:"name"`
	Currency   money.Currency `json:"currency"`
	Months     int            `json:"months"`
	Before     money.Amount   `json:"before_per_month"`
	After      money.Amount   `json:"after_per_month"`
	Saved      money.Amount   `json:"saved_per_month"`
	Lost       *money.Amount  `json:"quality_lost_per_month"` // null if the file does not give it
	Net        money.Amount   `json:"net_per_month"`
	Investment money.Amount   `json:"investment"`
	Gain       money.Amount   `json:"gain"`
	Payback    *float64       `json:"payback_months"` // null for never
	Return     *float64       `json:"return"`         // gain over investment; null without an investment
	MostWorth  *money.Amount  `json:"quality_unit_worth_at_most"`
	Pays       bool           `json:"pays"`
	Swings     []OwnSwing     `json:"sensitivity"`
	Metric     string         `json:"metric,omitempty"`
	// Cumulative is the net of all months less the investment, at the end of each month from 0 to Months.
	Cumulative []money.Amount `json:"cumulative_net"`
}

// ROIOf computes the result.
func ROIOf(t own.ROI) ROI {
	c := t.Case()
	v := ROI{Name: t.Name, Currency: t.Currency, Months: t.Months, Before: amount(c.Before), After: amount(c.After),
		Saved: amount(c.Saved), Net: amount(c.Net), Investment: amount(c.Investment), Gain: amount(c.Gain),
		Pays: c.Gain.Sign() > 0, Swings: append([]OwnSwing{}, ownSwings("", t.Swings())...), Metric: t.Metric}
	for _, sum := range c.Cumulative(t.Months) {
		v.Cumulative = append(v.Cumulative, amount(sum))
	}
	if t.Quality {
		lost := amount(c.Lost)
		v.Lost = &lost
	}
	if c.MostWorth != nil {
		if most, fits := sheet.Amount(c.MostWorth); fits { // a tiny loss of quality may be worth more than an amount can hold
			v.MostWorth = &most
		}
	}
	if c.Payback != nil {
		f, _ := c.Payback.Float64()
		v.Payback = &f
	}
	if c.Return != nil {
		f, _ := c.Return.Float64()
		v.Return = &f
	}
	return v
}

// Text formats the result for people: the business case.
func (v ROI) Text(p show.Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", v.Name, p.Columns()) + "\n")
	p.Fact(&b, "before", "%s a month", v.cents(v.Before))
	p.Fact(&b, "after", "%s a month", v.cents(v.After))
	p.Fact(&b, "saved", "%s a month", v.cents(v.Saved))
	if v.Lost != nil {
		p.Fact(&b, "quality", "%s a month is what the %s given up is worth", v.cents(*v.Lost), v.Metric)
	} else {
		p.Fact(&b, "quality", "unknown: the file does not say what is given up, so the rest holds only if nothing is")
	}
	p.Fact(&b, "net", "%s a month", v.cents(v.Net))
	p.Fact(&b, "investment", "%s", v.cents(v.Investment))
	p.Fact(&b, "payback", "%s", v.payback())
	gain := fmt.Sprintf("%s in %s", v.cents(v.Gain), draw.Count(v.Months, "month"))
	if v.Return != nil {
		gain += ", " + v.ReturnText() + " of the investment"
	}
	p.Fact(&b, "gain", "%s", gain)
	if v.MostWorth != nil {
		p.Fact(&b, "holds until", "a unit of %s is worth %s a month", v.Metric, v.cents(*v.MostWorth))
	}
	b.WriteString("\n" + draw.Wrap("", v.verdict(), p.Columns()))
	b.WriteString(tornado("What the gain becomes", v.Swings, "", v.Gain, v.Currency, p))
	return b.String()
}

// ReturnText writes the return as a percentage.
func (v ROI) ReturnText() string { return fmt.Sprintf("%.1f %%", 100**v.Return) }

func (v ROI) payback() string {
	switch {
	case v.Payback != nil:
		return fmt.Sprintf("%.1f months", *v.Payback)
	case v.Net.IsZero():
		return "never: nothing is saved"
	}
	return "never: each month costs more than it saves"
}

func (v ROI) verdict() string {
	switch {
	case v.Pays:
		return "It pays."
	case !v.Gain.IsZero():
		return "It does not pay."
	case v.Investment.IsZero():
		return "It neither saves nor costs money."
	}
	return "It breaks even: the investment is paid back at the end of the last month, and nothing is gained."
}
