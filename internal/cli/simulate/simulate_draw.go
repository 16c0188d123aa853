package simulate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/market"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
)

func pieces(p sim.Played) []simPiece {
	var list []simPiece
	for _, a := range p.Attempts {
		if a.From().IsZero() {
			continue
		}
		to := a.Until()
		if to.IsZero() {
			to = p.Ended
		}
		list = append(list, simPiece{from: a.From().Sub(p.Submitted), to: to.Sub(p.Submitted),
			spot: a.Capacity() == market.Spot,
			lost: a.Taken(), offer: string(a.Offer())})
	}
	return list
}

// laneJSON is the width of a lane in characters if the screen width is unknown.
const laneJSON = 48

// longest returns the longest duration among the first runs.
func longest(rows []simulated) time.Duration {
	d := time.Duration(0)
	for _, r := range rows {
		d = max(d, r.finish)
	}
	return d
}

// timeline draws the held machines: = for spot, # for on-demand or reserved, . for none, and x for an interruption.
func timeline(list []simPiece, whole time.Duration, width int) string {
	if whole <= 0 {
		return ""
	}
	line := []byte(strings.Repeat(".", width))
	at := func(d time.Duration) int { return int(float64(width) * float64(d) / float64(whole)) }
	end := 0
	for _, p := range list {
		i, k := at(p.from), min(int(float64(width)*float64(p.to)/float64(whole)+0.999), width)
		for ; i < k; i++ {
			line[i] = '#'
			if p.spot {
				line[i] = '='
			}
		}
		if p.lost && k > 0 {
			line[k-1] = 'x'
		}
		end = max(end, k)
	}
	return string(line[:end])
}

func simulatedTable(rows []simulated, s *stage, width int) string {
	columns := []draw.Column{
		{Name: "POLICY"}, {Name: "COST", Right: true}, {Name: "OF ON-DEM.", Right: true, Leaves: 1},
		{Name: "OVER OPT.", Right: true},
		{Name: "FINISH", Right: true}, {Name: "LATE", Right: true}, {Name: "INTERRUPTIONS", Right: true, Leaves: 2},
		{Name: "LOST", Right: true, Leaves: 3},
	}
	var table [][]string
	for _, r := range rows {
		of, over := "-", "-"
		if r.OfOnDemand != nil {
			of = fmt.Sprintf("%.0f %%", 100**r.OfOnDemand)
		}
		if r.OverOptimum != nil && r.Policy != replay.Optimum {
			over = fmt.Sprintf("%.1f %%", math.Round(1000**r.OverOptimum)/10+0) // +0 avoids a negative zero
		}
		cost := cents(r.MeanUSD)
		if r.Unfinished > 0 {
			cost = "-" // unfinished work has no cost: a note explains why
		}
		line := []string{r.Policy, cost, of, over}
		seconds := func(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }
		finish := "-"
		if r.Unfinished < r.Runs {
			finish = seconds(r.FinishS)
		}
		if r.Policy == replay.Optimum {
			line = append(line, "-", "-", "-", "-")
		} else {
			line = append(line, finish, fmt.Sprintf("%d of %d", r.Misses, r.Runs), fmt.Sprintf("%.1f", r.Interruptions),
				seconds(r.LostS))
		}
		table = append(table, line)
	}
	out := draw.Grid(columns, table, width)
	out += lanes(rows, s, width)
	if len(s.notes) > 0 {
		out += "\n"
	}
	return out
}

// lanes draws the first runs below each other, with the deadline if the screen has room.
func lanes(rows []simulated, s *stage, width int) string {
	const name = 20 // columns for a policy's name
	whole, wide := longest(rows), laneJSON
	if width > 0 { // 0 is any width
		wide = max(10, min(width-name-1, 100))
	}
	says, due := "", 0
	if span := s.span(); span > 0 && span <= 3*whole {
		whole = max(whole, span)
		due = int(float64(wide) * float64(span) / float64(whole))
		says = ", | the deadline after " + draw.Span(span)
	}
	out := ""
	for _, r := range rows {
		lane := timeline(r.first, whole, wide)
		if lane == "" {
			continue
		}
		if says != "" && due >= len(lane) {
			lane += strings.Repeat(" ", due-len(lane)) + "|"
		} else if says != "" {
			lane = lane[:due] + "|" + lane[min(due+1, len(lane)):]
		}
		out += fmt.Sprintf("%-*s%s\n", name, r.Policy, lane)
	}
	if out == "" {
		return ""
	}
	return "\n" + draw.Wrap("", "the first run: = spot, # on-demand or reserved, . nothing held, x interrupted"+says,
		width) + out
}

func signed(usd float64) string {
	if usd < 0 {
		return fmt.Sprintf("-$%.4f", -usd)
	}
	return fmt.Sprintf("$%.4f", usd)
}

// cents formats dollars, and small amounts to the tenth of a cent.
func cents(usd float64) string {
	if usd < 10 {
		return fmt.Sprintf("$%.3f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// simulatedSVG draws the first run of every policy, a lane each, with its mean cost over all runs.
func simulatedSVG(rows []simulated, s *stage) string {
	g := draw.Gantt{Title: "The first run of each policy on market " + s.trace.Name}
	spot, steady, lost := false, false, false
	for _, r := range rows {
		if r.Policy == replay.Optimum {
			continue
		}
		lane := r.Policy + ", " + cents(r.MeanUSD)
		if r.Unfinished > 0 {
			lane = r.Policy + ", not done"
		}
		g.Lanes = append(g.Lanes, lane)
		for _, p := range r.first {
			use := "steady"
			if p.spot {
				use = "spot"
			}
			spot, steady = spot || p.spot, steady || !p.spot
			g.Blocks = append(g.Blocks, draw.Block{Lane: lane, From: s.opened.Add(p.from), To: s.opened.Add(p.to), Use: use,
				Title: fmt.Sprintf("%s, %s", p.offer, draw.Span(p.to-p.from))})
			if p.lost {
				lost = true
				g.Marks = append(g.Marks, draw.Mark{Lane: lane, At: s.opened.Add(p.to), Class: "kill",
					Title: "interrupted after " + draw.Span(p.to-p.from)})
			}
		}
	}
	for _, k := range []struct {
		used bool
		key  draw.Key
	}{{spot, draw.Key{Use: "spot", Says: "spot"}}, {steady, draw.Key{Use: "steady", Says: "on-demand or reserved"}},
		{lost, draw.Key{Use: "mark", Says: "interrupted"}}} {
		if k.used {
			g.Keys = append(g.Keys, k.key)
		}
	}
	if span := s.span(); span > 0 && span <= 3*longest(rows) {
		g.Until, g.Line = s.opened.Add(span), "deadline after "+draw.Span(span)
		g.Keys = append(g.Keys, draw.Key{Use: "until", Says: g.Line})
	}
	return draw.Standalone(g.SVG())
}
