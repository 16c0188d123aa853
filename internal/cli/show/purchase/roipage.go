package purchase

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/own"
)

// ROIPageBegin starts every page of every version; it identifies a file as a business case.
const ROIPageBegin = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Business case: `

//go:embed roi.html
var roiText string

var roiPage = template.Must(template.New("roi").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(draw.PageStyle) },
	"count": draw.Count,
}).Parse(roiText))

// casePart is a table of the page: what a month costs before or after, or what is paid once.
type casePart struct {
	Name, Total string
	Lines       []caseLine
}

type caseLine struct{ What, Formula, Amount string }

// caseValue is a value of the file. Low and High are "" without a range.
type caseValue struct{ Name, Is, Low, High, Unit, Source string }

// caseSwing is the gain at the ends of a value's range, with the bar from the lower to the higher, in per cent of the
// width.
type caseSwing struct {
	Name, Low, High, AtLow, AtHigh string
	Lost                           bool // one end does not pay
	Left, Width                    template.CSS
}

type caseMonth struct {
	Month int
	Net   string
}

// ROIPage renders the business case as one self-contained page.
func ROIPage(t own.ROI) ([]byte, error) {
	v := ROIOf(t)
	givenUp, worth := t.Loss()
	parts := []casePart{
		partOf(t, "Before, a month", t.Before, v.Before), partOf(t, "After, a month", t.After, v.After),
		partOf(t, "Investment, once", t.Investment, v.Investment)}
	var values []caseValue
	for _, a := range t.Values {
		one := caseValue{Name: a.Name, Is: a.Text(a.Is), Unit: a.Unit, Source: a.Source}
		if a.Low != nil {
			one.Low, one.High = a.Text(a.Low), a.Text(a.High)
		}
		values = append(values, one)
	}
	months := make([]caseMonth, len(v.Cumulative))
	for m, sum := range v.Cumulative {
		months[m] = caseMonth{m, v.cents(sum)}
	}
	swings, middle := v.bars(t.Swings())
	var b bytes.Buffer
	err := roiPage.Execute(&b, struct {
		ROI
		Source, GivenUp, Worth                   string
		SavedText, NetText, InvestText, GainText string
		LostText, MostText, Verdict, PaybackText string
		Parts                                    []casePart
		Facts                                    []caseValue
		Bars                                     []caseSwing
		Middle                                   template.CSS
		Chart                                    template.HTML
		ByMonth                                  []caseMonth
	}{v, t.Source, givenUp, worth, v.cents(v.Saved), v.cents(v.Net), v.cents(v.Investment), v.cents(v.Gain),
		v.optional(v.Lost), v.optional(v.MostWorth), v.verdict(), v.payback(), parts, values, swings, middle,
		template.HTML(v.chart()), months})
	if err != nil {
		return nil, fmt.Errorf("draw the business case: %w", err)
	}
	return b.Bytes(), nil
}

func (v ROI) cents(a money.Amount) string { return money.Format(a, v.Currency, 2) }

// optional returns "" for an unknown amount.
func (v ROI) optional(a *money.Amount) string {
	if a == nil {
		return ""
	}
	return v.cents(*a)
}

func partOf(t own.ROI, name string, lines []own.Line, total money.Amount) casePart {
	p := casePart{Name: name, Total: money.Format(total, t.Currency, 2)}
	for _, l := range lines {
		p.Lines = append(p.Lines, caseLine{l.What, l.Formula(t.Values), money.Format(amount(t.Amount(l)), t.Currency, 2)})
	}
	return p
}

// bars returns the swings with their bars, and where the gain lies without a change.
func (v ROI) bars(list []own.Swing) (bars []caseSwing, middle template.CSS) {
	x0, x1 := v.Gain.Float(), v.Gain.Float()
	for _, s := range v.Swings {
		x0, x1 = min(x0, s.AtLow.Float(), s.AtHigh.Float()), max(x1, s.AtLow.Float(), s.AtHigh.Float())
	}
	share := func(x float64) float64 { return 100 * x / max(x1-x0, math.SmallestNonzeroFloat64) }
	for i, s := range v.Swings {
		low, high := s.AtLow.Float(), s.AtHigh.Float()
		value := list[i].Value
		bars = append(bars, caseSwing{Name: s.Value, Low: value.Text(value.Low), High: value.Text(value.High),
			AtLow: v.cents(s.AtLow), AtHigh: v.cents(s.AtHigh), Lost: s.AtLow.Sign() < 0 || s.AtHigh.Sign() < 0,
			Left:  template.CSS(fmt.Sprintf("left:%.2f%%", share(min(low, high)-x0))),
			Width: template.CSS(fmt.Sprintf("width:%.2f%%", share(max(low, high)-min(low, high))))})
	}
	return bars, template.CSS(fmt.Sprintf("left:%.2f%%", share(v.Gain.Float()-x0)))
}

// chart draws the cumulative net by month, and when the investment is paid back.
func (v ROI) chart() string {
	net := draw.Series{Name: "cumulative net, " + string(v.Currency), Class: "spent"}
	low, high := 0.0, 0.0
	for m, sum := range v.Cumulative {
		net.Points = append(net.Points, draw.Point{X: float64(m), Y: sum.Float()})
		low, high = min(low, sum.Float()), max(high, sum.Float())
	}
	all := []draw.Series{net,
		{Name: "nothing gained", Class: "budget", Points: []draw.Point{{X: 0}, {X: float64(v.Months)}}}}
	if v.Payback != nil && *v.Payback > 0 && *v.Payback <= float64(v.Months) {
		all = append(all, draw.Series{Name: "paid back", Class: "ondemand",
			Points: []draw.Point{{X: *v.Payback, Y: low}, {X: *v.Payback, Y: high}}})
	}
	month := func(m float64) string { return fmt.Sprintf("month %g", m) }
	return draw.Curves("Cumulative net by month", all, month, draw.Tick)
}
