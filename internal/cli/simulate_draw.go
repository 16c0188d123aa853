package cli

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/draw"
	"scrimp/internal/market"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
)

func pieces(p sim.Played) []simPiece {
	var list []simPiece
	for _, a := range p.Attempts {
		if a.From.IsZero() {
			continue
		}
		to := a.Until
		if to.IsZero() {
			to = p.Ended
		}
		list = append(list, simPiece{from: a.From.Sub(p.Submitted), to: to.Sub(p.Submitted), spot: a.Capacity == market.Spot, lost: a.Taken(), offer: string(a.Offer)})
	}
	return list
}

// timeline draws what was held: = spot, # what cannot be taken, . nothing.
func timeline(list []simPiece, whole time.Duration, width int) string {
	if whole <= 0 {
		return ""
	}
	line := []byte(strings.Repeat(".", width))
	end := 0
	for _, p := range list {
		i := int(float64(width) * float64(p.from) / float64(whole))
		k := int(float64(width)*float64(p.to)/float64(whole) + 0.999)
		for ; i < min(k, width); i++ {
			line[i] = '#'
			if p.spot {
				line[i] = '='
			}
		}
		end = max(end, min(k, width))
	}
	return string(line[:end])
}

func simulatedTable(rows []simulated, width int) string {
	columns := []draw.Column{
		{Name: "POLICY"}, {Name: "COST", Right: true}, {Name: "OF ON-DEM.", Right: true, Leaves: 1}, {Name: "OVER OPT.", Right: true},
		{Name: "FINISH", Right: true}, {Name: "LATE", Right: true}, {Name: "TAKEN", Right: true, Leaves: 2}, {Name: "LOST", Right: true, Leaves: 3},
	}
	var table [][]string
	for _, r := range rows {
		of, over := "-", "-"
		if r.OfOnDemand != nil {
			of = fmt.Sprintf("%.0f %%", 100**r.OfOnDemand)
		}
		if r.OverOptimum != nil && r.Policy != replay.Optimum {
			over = fmt.Sprintf("%.1f %%", 100**r.OverOptimum)
		}
		line := []string{r.Policy, cents(r.MeanUSD), of, over}
		if r.Policy == replay.Optimum {
			line = append(line, "-", "-", "-", "-")
		} else {
			seconds := func(s float64) string { return draw.Span(time.Duration(s * float64(time.Second))) }
			line = append(line, seconds(r.FinishS), fmt.Sprintf("%d of %d", r.Misses, r.Runs), fmt.Sprintf("%.1f", r.Interruptions), seconds(r.LostS))
		}
		table = append(table, line)
	}
	out := draw.Grid(columns, table, width)
	lanes := false
	for _, r := range rows {
		if r.Timeline != "" {
			if !lanes {
				out += "\nthe first run: = spot, # on-demand or reserved, . nothing held\n"
				lanes = true
			}
			lane := fmt.Sprintf("%-18s  %s", r.Policy, r.Timeline)
			if width > 0 { // 0 is any width
				lane = draw.Cut(lane, width)
			}
			out += lane + "\n"
		}
	}
	return out
}

func signed(usd float64) string {
	if usd < 0 {
		return fmt.Sprintf("-$%.4f", -usd)
	}
	return fmt.Sprintf("$%.4f", usd)
}

// cents shows small amounts to the tenth of a cent.
func cents(usd float64) string {
	if usd < 10 {
		return fmt.Sprintf("$%.3f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// simulatedSVG draws the first run of every policy, a lane each.
func simulatedSVG(rows []simulated, opened time.Time) string {
	var blocks []draw.Block
	var marks []draw.Mark
	for _, r := range rows {
		for _, p := range r.first {
			use := "lost"
			if p.spot {
				use = "useful"
			}
			blocks = append(blocks, draw.Block{Lane: r.Policy, From: opened.Add(p.from), To: opened.Add(p.to), Use: use, Title: fmt.Sprintf("%s, %s", p.offer, draw.Span(p.to-p.from))})
			if p.lost {
				marks = append(marks, draw.Mark{Lane: r.Policy, At: opened.Add(p.to), Class: "kill", Title: "taken after " + draw.Span(p.to-p.from)})
			}
		}
	}
	return draw.Standalone(draw.Timeline(blocks, marks))
}
