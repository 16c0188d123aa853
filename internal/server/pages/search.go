package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// search is what the page of a search shows beside what all groups have.
type search struct {
	Trials      []client.Trial // best first
	Spend       template.HTML  // best value against the spend
	Curves      template.HTML  // of the best trials
	Parallel    template.HTML  // parameters and value of each trial
	Importances []importance   // of the parameters, the largest first
	OnProxy     bool           // the drawings show the trials on the proxy: values in full do not compare with them
	Saved       *float64       // by trials that were left early, in dollars; nil: unknown, or nothing
}

// importance is the share of the values' spread that a parameter explains.
type importance struct {
	Name  string
	Share float64
}

// mostThreads bounds the trials in a drawing.
const mostThreads = 200

// search fetches the trials of a search with their curves, sorts them, the best first and those without a value last,
// and draws them. Trials on a proxy follow those trained in full.
func (p *groupPage) search(v *visit, id string) error {
	x := &search{}
	if err := v.get("/v1/groups/"+id+"/trials?curves=1", &x.Trials); err != nil {
		return err
	}
	slices.SortStableFunc(x.Trials, func(a, b client.Trial) int {
		switch {
		case a.Proxy != b.Proxy:
			return map[bool]int{true: 1, false: -1}[a.Proxy]
		case a.Best == nil && b.Best == nil:
			return 0
		case a.Best == nil:
			return 1
		case b.Best == nil:
			return -1
		case p.Study.Maximize:
			return cmp.Compare(*b.Best, *a.Best)
		}
		return cmp.Compare(*a.Best, *b.Best)
	})
	x.OnProxy = p.Study.Proxy != nil
	drawn := slices.DeleteFunc(slices.Clone(x.Trials), func(t client.Trial) bool { return t.Proxy != x.OnProxy })
	x.Curves, x.Parallel = trialCurves(p.Study, drawn), parallel(p.Study, drawn)
	if r := p.Receipt.Study; r != nil {
		marks := r.BestBySpend
		if x.OnProxy {
			marks = r.ProxyBySpend
		}
		x.Spend = bestBySpend(p.Study, marks, p.Currency)
		if r.Importance != nil {
			for _, name := range slices.Sorted(maps.Keys(r.Importance.Shares)) {
				x.Importances = append(x.Importances, importance{name, r.Importance.Shares[name]})
			}
			slices.SortStableFunc(x.Importances, func(a, b importance) int { return cmp.Compare(b.Share, a.Share) })
		}
		if r.AllFull != nil && (x.OnProxy || r.Pruned.Sign() > 0) && p.State == "over" {
			if saved := *r.AllFull - p.Receipt.Cost.Float(); saved > 0 {
				x.Saved = &saved
			}
		}
	}
	p.More = max(0, len(x.Trials)-mostMembers)
	x.Trials = x.Trials[:len(x.Trials)-p.More]
	p.Search = x
	return nil
}

// bestBySpend draws the best value of a search against its spend, as steps.
func bestBySpend(s *client.StudyState, marks []client.StudyMark, c money.Currency) template.HTML {
	line := draw.Series{Name: "best " + draw.Cut(s.Metric, 20), Class: classes[0]}
	for i, m := range marks {
		if i > 0 {
			line.Points = append(line.Points, draw.Point{X: m.SpentUSD, Y: marks[i-1].Best})
		}
		line.Points = append(line.Points, draw.Point{X: m.SpentUSD, Y: m.Best})
	}
	if len(line.Points) < 2 {
		return ""
	}
	return template.HTML(draw.Curves("Best value against the spend", []draw.Series{line},
		func(v float64) string { return money.ShortFloat(v, c) }, digits))
}

// trialCurves draws the values of the best trials by their training; each other trial is a thin line behind them.
func trialCurves(s *client.StudyState, trials []client.Trial) template.HTML {
	if s.Fidelity == nil {
		return ""
	}
	var named, others []draw.Series
	for _, t := range trials[:min(len(trials), mostThreads)] {
		line := draw.Series{Class: "other"}
		for _, v := range t.Curve {
			line.Points = append(line.Points, draw.Point{X: v.Unit, Y: v.Value})
		}
		if len(line.Points) == 0 {
			continue
		}
		if n := len(named); n < len(classes)-1 {
			line.Name, line.Class = draw.Cut(t.ID, 24), classes[n]
			named = append(named, line)
			continue
		}
		others = append(others, line)
	}
	if len(named) == 0 {
		return ""
	}
	return template.HTML(draw.Curves(draw.Cut(s.Metric, 30)+" by "+s.Fidelity.Name, append(named, others...), digits,
		digits))
}

// parallel draws each trial as a line across its parameters to its best value.
func parallel(s *client.StudyState, trials []client.Trial) template.HTML {
	trials = trials[:min(len(trials), mostThreads)]
	best := make([]float64, len(trials))
	for i, t := range trials {
		best[i] = math.NaN()
		if t.Best != nil {
			best[i] = *t.Best
		}
	}
	var axes []draw.Axis
	at := make([][]float64, len(trials))
	add := func(name string, column []float64, low, high string) {
		axes = append(axes, draw.Axis{Name: name, Low: low, High: high})
		for i, v := range column {
			at[i] = append(at[i], v)
		}
	}
	for _, q := range s.Params {
		column, low, high := placesOf(q, trials)
		add(q.Name, column, low, high)
	}
	column, low, high := spread(best, false)
	add(s.Metric, column, digits(low), digits(high))
	var threads []draw.Thread
	for i := len(trials) - 1; i >= 0; i-- { // the best on top
		if trials[i].Best == nil {
			continue
		}
		class := "other"
		if i < len(classes)-1 {
			class = classes[i]
		}
		threads = append(threads, draw.Thread{At: at[i], Class: class,
			Title: fmt.Sprintf("%s: %s %s", trials[i].ID, s.Metric, digits(best[i]))})
	}
	if len(threads) < 2 {
		return ""
	}
	return template.HTML(draw.Parallel("Parameters of the trials and their best values", axes, threads))
}

// placesOf returns the places of a parameter's values on its axis, from 0 to 1, and the labels of the ends. NaN: a
// trial has no such value.
func placesOf(q client.StudyParam, trials []client.Trial) (column []float64, low, high string) {
	column = make([]float64, len(trials))
	if len(q.Values) > 0 {
		plain := make([]string, len(q.Values))
		for i, v := range q.Values {
			if text, err := strconv.Unquote(v); err == nil {
				v = text
			}
			plain[i] = v
		}
		for i, t := range trials {
			n := slices.Index(plain, t.Params[q.Name])
			if column[i] = math.NaN(); n >= 0 {
				column[i] = (float64(n) + 0.5) / float64(len(plain))
			}
		}
		return column, draw.Cut(plain[0], 12), draw.Cut(plain[len(plain)-1], 12)
	}
	for i, t := range trials {
		v, err := strconv.ParseFloat(t.Params[q.Name], 64)
		if column[i] = v; err != nil {
			column[i] = math.NaN()
		}
	}
	column, from, to := spread(column, q.Log)
	return column, digits(from), digits(to)
}

// spread returns places from 0 to 1 between the smallest and the largest value, by logarithms if log is set.
func spread(list []float64, log bool) (places []float64, low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range list {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	of := func(v float64) float64 { return v }
	if log && low > 0 {
		of = math.Log
	}
	places = make([]float64, len(list))
	for i, v := range list {
		if places[i] = 0.5; high != low {
			places[i] = (of(v) - of(low)) / (of(high) - of(low))
		}
		if math.IsNaN(v) {
			places[i] = v
		}
	}
	return places, low, high
}

// digits formats a statistic.
func digits(v float64) string {
	return strings.ReplaceAll(strconv.FormatFloat(v, 'g', 4, 64), "e+0", "e")
}
