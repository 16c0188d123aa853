package receipt

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// HTML renders the receipt as one self-contained page.
func (r Receipt) HTML() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		Receipt
		Verdict                 string
		Timeline, SpendSVG, Fit template.HTML
		Use                     template.HTML
		Shares                  []share
	}{r, r.verdict(), template.HTML(r.timeline()), template.HTML(r.spendChart()), template.HTML(r.lossChart()),
		template.HTML(r.useChart()), r.shares()})
	if err != nil {
		return nil, fmt.Errorf("draw the receipt of %s: %w", r.Job, err)
	}
	return b.Bytes(), nil
}

type share struct {
	Use     ledger.Use
	Amount  string
	Percent float64
}

func (r Receipt) shares() []share {
	var list []share
	for _, u := range uses {
		if v := r.Uses[u]; v.Sign() > 0 && r.Cost.Sign() > 0 {
			list = append(list, share{u, r.money(v), v.Float() / r.Cost.Float() * 100})
		}
	}
	return list
}

func (r Receipt) timeline() string {
	var blocks []draw.Block
	var marks []draw.Mark
	for _, t := range r.Tries {
		begun := t.Until
		if t.Begun != nil {
			begun = *t.Begun
			blocks = append(blocks, draw.Block{Lane: t.Offer, From: begun, To: t.Until, Use: string(ledger.Useful),
				Title: fmt.Sprintf("%s: steps %d to %d, %s, %s", t.Attempt, t.First, t.Last, r.money(t.Cost), EndText(t.End))})
		}
		blocks = append(blocks, draw.Block{Lane: t.Offer, From: t.From, To: begun, Use: string(ledger.StartUp),
			Title: t.Attempt + " starts"})
		if x := t.Preemption; x != nil {
			marks = append(marks, draw.Mark{Lane: t.Offer, At: t.Until, Class: "notice", Title: "preempted by " + x.By})
		}
		for _, i := range r.Interruptions {
			if t.has(i.Instance) {
				class, text := "kill", "interrupted without notice"
				if i.Notice > 0 {
					class, text = "notice", fmt.Sprintf("interrupted after %.0f s of notice", i.Notice)
				}
				marks = append(marks, draw.Mark{Lane: t.Offer, At: i.MarketAt, Class: class, Title: text})
			}
		}
	}
	return draw.Timeline(blocks, marks)
}

// has reports whether the attempt ran on the machine.
func (t Try) has(instance string) bool {
	return t.Instance == instance || slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Instance == instance })
}

func (r Receipt) since(t time.Time) float64 { return t.Sub(r.SubmittedMarket).Seconds() }

// digits returns a formatter for the labels of an axis up to most, with three significant digits.
func digits(most float64) func(float64) string {
	places := 2
	if most > 0 && most < 1 {
		places = min(9, 2-int(math.Floor(math.Log10(most))))
	}
	return func(v float64) string { return fmt.Sprintf("%.*f", places, v) }
}

// inCurrency adds the currency to an axis label.
func inCurrency(c money.Currency, number string) string {
	if c == money.USD {
		return "$" + number
	}
	return number + " " + string(c)
}

func largest(all []draw.Series) float64 {
	most := 0.0
	for _, s := range all {
		for _, p := range s.Points {
			if !math.IsInf(p.Y, 0) && !math.IsNaN(p.Y) {
				most = max(most, math.Abs(p.Y))
			}
		}
	}
	return most
}

func (r Receipt) spendChart() string {
	if len(r.Spend) < 2 {
		return ""
	}
	line := draw.Series{Name: "spent", Class: "spent"}
	for _, s := range r.Spend {
		line.Points = append(line.Points, draw.Point{X: r.since(s.At), Y: s.Amount.Float()})
	}
	end := line.Points[len(line.Points)-1].X
	all := []draw.Series{line}
	flat := func(name, class string, a *money.Amount) {
		if a != nil {
			all = append(all, draw.Series{Name: name, Class: class,
				Points: []draw.Point{{X: line.Points[0].X, Y: a.Float()}, {X: end, Y: a.Float()}}})
		}
	}
	flat("budget", "budget", r.Budget)
	flat("on-demand", "ondemand", r.OnDemandCost)
	plain := digits(largest(all))
	return draw.Lines("Spend over time", all, draw.Moment,
		func(v float64) string { return inCurrency(r.Currency, plain(v)) })
}

func (r Receipt) lossChart() string {
	if len(r.Loss) < 2 {
		return ""
	}
	line := draw.Series{Name: r.LossName, Class: "loss"}
	for _, s := range r.Loss {
		line.Points = append(line.Points, draw.Point{X: r.since(s.At), Y: s.Value})
	}
	return draw.Lines(r.LossName+" over time", []draw.Series{line}, draw.Moment,
		digits(largest([]draw.Series{line})))
}

//go:embed page.html
var pageText string

// PageBegin starts every page of every version; it identifies a file as a receipt.
const PageBegin = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Receipt for `

var page = template.Must(template.New("receipt").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(draw.PageStyle) },
	"money": func(c money.Currency, a money.Amount) string { return sum(a, c) },
	"rate":  func(c money.Currency, r money.Rate) string { return money.Format(money.Picos(int64(r)), c, 4) },
	"whole": func(c money.Currency, a *money.Amount) string {
		if a == nil {
			return "none"
		}
		return money.Short(*a, c)
	},
	"percent": func(f *float64) string {
		if f == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.1f %%", *f*100)
	},
	"span":      func(a, b time.Time) string { return draw.Span(b.Sub(a)) },
	"simulated": draw.SimulatedClock,
	"next":      func(n int) int { return n + 1 },
	"clock":     func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"day":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"plain":     func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"ended":     EndText,
	"saves":     saves,
	"width":     func(f float64) template.CSS { return template.CSS(fmt.Sprintf("width:%.3f%%", f)) },
	"dollar":    func(a *money.Amount) string { return a.String() },
}).Parse(pageText))
