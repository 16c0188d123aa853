package receipt

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"scrimp/internal/draw"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
)

// HTML is the receipt as one page that needs nothing else.
func (r Receipt) HTML() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		Receipt
		Verdict                 string
		Timeline, SpendSVG, Fit template.HTML
		Shares                  []share
	}{r, r.verdict(), template.HTML(r.timeline()), template.HTML(r.spendChart()), template.HTML(r.lossChart()), r.shares()})
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
			blocks = append(blocks, draw.Block{Lane: t.Offer, From: begun, To: t.Until, Use: string(ledger.Useful), Title: fmt.Sprintf("%s: steps %d to %d, %s, %s", t.Attempt, t.First, t.Last, r.money(t.Cost), t.End)})
		}
		blocks = append(blocks, draw.Block{Lane: t.Offer, From: t.From, To: begun, Use: string(ledger.StartUp), Title: t.Attempt + " starts"})
		for _, i := range r.Interruptions {
			if i.Instance == t.Instance {
				class, text := "kill", "taken without notice"
				if i.Notice > 0 {
					class, text = "notice", fmt.Sprintf("taken after %.0f s of notice", i.Notice)
				}
				marks = append(marks, draw.Mark{Lane: t.Offer, At: i.MarketAt, Class: class, Title: text})
			}
		}
	}
	return draw.Timeline(blocks, marks)
}

func (r Receipt) since(t time.Time) float64 { return t.Sub(r.SubmittedMarket).Seconds() }

// digits writes the numbers of an axis that reaches to most: three digits that count.
func digits(most float64) func(float64) string {
	places := 2
	if most > 0 && most < 1 {
		places = min(9, 2-int(math.Floor(math.Log10(most))))
	}
	return func(v float64) string { return fmt.Sprintf("%.*f", places, v) }
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
			all = append(all, draw.Series{Name: name, Class: class, Points: []draw.Point{{X: line.Points[0].X, Y: a.Float()}, {X: end, Y: a.Float()}}})
		}
	}
	flat("budget", "budget", r.Budget)
	flat("on-demand", "ondemand", r.OnDemandCost)
	return draw.Lines("Spend over market time", all, draw.Moment, digits(largest(all)))
}

func (r Receipt) lossChart() string {
	if len(r.Loss) < 2 {
		return ""
	}
	line := draw.Series{Name: r.LossName, Class: "loss"}
	for _, s := range r.Loss {
		line.Points = append(line.Points, draw.Point{X: r.since(s.At), Y: s.Value})
	}
	return draw.Lines(r.LossName+" over market time", []draw.Series{line}, draw.Moment, digits(largest([]draw.Series{line})))
}

var page = template.Must(template.New("receipt").Funcs(template.FuncMap{
	"money": func(c money.Currency, a money.Amount) string {
		if f := math.Abs(a.Float()); f > 0 && f < 0.01 {
			return money.Format(a, c, 6)
		}
		return money.Format(a, c, 4)
	},
	"rate": func(c money.Currency, r money.Rate) string { return money.Format(money.Picos(int64(r)), c, 4) },
	"whole": func(c money.Currency, a *money.Amount) string {
		if a == nil {
			return "none"
		}
		return money.Format(*a, c, 2)
	},
	"percent": func(f *float64) string {
		if f == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.1f %%", *f*100)
	},
	"span":   func(a, b time.Time) string { return draw.Span(b.Sub(a)) },
	"clock":  func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"day":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"plain":  func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"saves":  saves,
	"width":  func(f float64) template.CSS { return template.CSS(fmt.Sprintf("width:%.3f%%", f)) },
	"dollar": func(a *money.Amount) string { return a.String() },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Receipt for {{.Job}}</title>
<style>
:root{--ink:#1b2430;--soft:#5c6875;--line:#dfe4ea;--page:#fff;--card:#f6f8fa;--useful:#0072b2;--startup:#e69f00;--lost:#d55e00;--idle:#999;--open:#bbb;--ok:#00795a;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaef;--soft:#9aa7b4;--line:#323b46;--page:#12161b;--card:#1a2027;--useful:#56b4e9;--startup:#f0b93a;--lost:#f08a4b;--idle:#777;--open:#555;--ok:#3ecf9d;--bad:#ff7b72}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:980px;margin:0 auto;padding:32px 20px 60px}h1{font-size:24px;margin:0 0 2px}h2{font-size:15px;margin:34px 0 10px;color:var(--soft);font-weight:600;letter-spacing:.02em}
.verdict{font-size:16px;margin:0 0 22px}.ok{color:var(--ok)}.bad{color:var(--bad)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px}.figures div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 14px}
.figures b{display:block;font-size:21px;font-variant-numeric:tabular-nums}.figures span{color:var(--soft);font-size:13px}
.bar{display:flex;height:18px;border-radius:5px;overflow:hidden;background:var(--line)}.bar i{display:block}.useful{background:var(--useful);fill:var(--useful)}.start-up{background:var(--startup);fill:var(--startup)}.lost{background:var(--lost);fill:var(--lost)}.idle{background:var(--idle);fill:var(--idle)}.open{background:var(--open);fill:var(--open)}
.keys{display:flex;flex-wrap:wrap;gap:6px 20px;margin-top:8px;font-size:13px}.keys i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}th{color:var(--soft);font-weight:600;text-align:left}th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);white-space:nowrap}.n{text-align:right}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}svg .lane{fill:var(--ink);font-size:12.5px}.rail,.grid{stroke:var(--line)}.mid{text-anchor:middle}.end{text-anchor:end}
.mark{stroke:var(--page)}.mark.kill{fill:var(--bad)}.mark.notice{fill:var(--ink)}.line{stroke-width:2}.line.spent,.line.loss{stroke:var(--useful)}.line.budget{stroke:var(--bad);stroke-dasharray:6 4}.line.ondemand{stroke:var(--startup);stroke-dasharray:2 4}svg .key.spent,svg .key.loss{fill:var(--useful)}svg .key.budget{fill:var(--bad)}svg .key.ondemand{fill:var(--startup)}
.keys .killed{color:var(--bad)}details{margin-top:10px}summary{cursor:pointer;color:var(--soft)}code{font-size:12.5px;word-break:break-all}li{margin:4px 0}footer{margin-top:40px;color:var(--soft);font-size:13px}
@media (max-width:560px){svg{overflow:visible}svg text{font-size:22px}svg .lane{font-size:14px}}
@media print{main{padding:0}details{display:none}}
</style></head><body><main>
<h1>Receipt for {{.Job}}</h1>
<p class="verdict {{if eq .State "succeeded"}}ok{{else}}bad{{end}}">{{.Verdict}}</p>
<div class="figures">
<div><b>{{money .Currency .Cost}}</b><span>cost, of {{whole .Currency .Budget}} budget</span></div>
{{if .OnDemandCost}}<div><b>{{money .Currency .OnDemandCost}}</b><span>the same work on-demand</span></div>
<div><b>{{percent .SavedShare}}</b><span>saved</span></div>{{end}}
<div><b>{{len .Interruptions}}</b><span>interruption{{if ne (len .Interruptions) 1}}s{{end}} in {{.Attempts}} attempt{{if ne .Attempts 1}}s{{end}}</span></div>
<div><b>{{.Step}}</b><span>steps, {{.Checkpoints}} checkpoint{{if ne .Checkpoints 1}}s{{end}}</span></div>
</div>
<h2>What the money did</h2>
<div class="bar">{{range .Shares}}<i class="{{.Use}}" style="{{width .Percent}}" title="{{.Use}}"></i>{{end}}</div>
<div class="keys">{{range .Shares}}<span><i class="{{.Use}}"></i>{{.Use}} {{.Amount}} ({{printf "%.1f" .Percent}} %)</span>{{end}}</div>
<h2>Timeline</h2>{{.Timeline}}{{if .Interruptions}}<div class="keys"><span><b class="noticed">▾</b> taken with a notice</span><span><b class="killed">▾</b> taken without</span></div>{{end}}
{{if .SpendSVG}}<h2>Spend</h2>{{.SpendSVG}}{{end}}
{{if .Fit}}<h2>{{.LossName}}</h2>{{.Fit}}{{end}}
<h2>Attempts</h2><div class="wide"><table><tr><th>attempt<th>offer<th class="n">from<th class="n">ran<th class="n">rate/h<th class="n">steps<th class="n">cost<th>end</tr>
{{$c := .Currency}}{{range .Tries}}<tr><td>{{.Attempt}}<td>{{.Offer}}<td class="n">{{clock .From}}<td class="n">{{span .From .Until}}<td class="n">{{rate $c .Rate}}<td class="n">{{.First}}–{{.Last}}<td class="n">{{money $c .Cost}}<td>{{plain .End}}</tr>{{range .Rules}}<tr><td><td>billing rule: {{.Rule}}<td><td><td><td><td class="n">{{money $c .Amount}}<td>included above</tr>{{end}}{{end}}</table></div>
{{if .Interruptions}}<h2>Interruptions</h2><div class="wide"><table><tr><th>machine<th>market time<th>notice<th>the next attempt began from</tr>
{{range .Interruptions}}<tr><td>{{.Instance}}<td>{{clock .MarketAt}}<td>{{if .Notice}}{{printf "%.0f s" .Notice}}{{else}}none{{end}}<td>{{if .Restored}}checkpoint {{.Restored}}{{else}}the beginning{{end}}</tr>{{end}}</table></div>{{end}}
{{if .Tips}}<h2>What would make the next run cheaper</h2><ul>{{range .Tips}}<li>{{.Text}}{{saves .}}</li>{{end}}</ul>{{end}}
<h2>Why</h2><details><summary>{{len .Decisions}} decisions</summary><div class="wide"><table><tr><th>market time<th>took<th>why<th>mode<th>rejected</tr>
{{range .Decisions}}<tr><td>{{clock .MarketAt}}<td>{{if .Take}}{{.Take}}{{else}}waits{{end}}<td>{{plain .Why}}<td>{{.Mode}}<td>{{range .Rejected}}{{.}}<br>{{end}}</tr>{{end}}</table></div></details>
<details><summary>how this was computed</summary><p>Each attempt costs the cumulative price of its span, cut where the price changed; billing rules of the provider are lines of their own (without them: {{money .Currency .CostWithoutRules}}). On-demand is the useful work and one start-up at the cheapest on-demand price. The ledger holds {{.Ledger.Postings}} postings whose sums {{if .Ledger.Agrees}}agree to the last unit{{else}}DO NOT AGREE{{end}}; its head is <code>{{.Ledger.Head | printf "%x"}}</code>.</p></details>
<footer>Submitted {{day .Submitted}}. Market {{.Market}} at speed {{.MarketSpeed}}: spans and money are market time.</footer>
</main></body></html>
`))
