package purchase

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/commit/blocks"
)

// Block is one block of a plan.
type Block struct {
	Start    time.Time    `json:"start"`
	End      time.Time    `json:"end"`
	Days     int          `json:"days"`
	Machines int64        `json:"machines"`
	Cost     money.Amount `json:"cost_usd"`      // paid in advance
	OnDemand money.Amount `json:"on_demand_usd"` // of the hours that the demand uses
	Used     float64      `json:"used"`          // share of its machine hours
}

// Blocks is the output of scrimp commit blocks for a region.
type Blocks struct {
	Region   string       `json:"region"`
	Blocks   []Block      `json:"blocks"`
	Advance  money.Amount `json:"blocks_usd"`    // all blocks
	Rest     money.Amount `json:"rest_usd"`      // on demand, beside the blocks
	Cost     money.Amount `json:"cost_usd"`      // both
	OnDemand money.Amount `json:"on_demand_usd"` // without blocks
	Saved    money.Amount `json:"saved_usd"`
	Longest  int          `json:"longest_days"`
	Most     int64        `json:"machines"`
}

// BlocksOf returns a plan with its costs.
func BlocksOf(region string, p blocks.Plan, t blocks.Terms) Blocks {
	v := Blocks{Region: region, Blocks: []Block{}, Rest: blocks.Cost(t.OnDemand, p.Rest),
		OnDemand: blocks.Cost(t.OnDemand, p.Demand), Longest: t.Longest, Most: t.Machines}
	for _, b := range p.Blocks {
		v.Blocks = append(v.Blocks, Block{Start: b.Start, End: b.End(), Days: b.Days, Machines: b.Machines,
			Cost: blocks.Cost(t.Block, b.Paid()), OnDemand: blocks.Cost(t.OnDemand, b.Used),
			Used: float64(b.Used) / float64(b.Paid())})
		v.Advance = v.Advance.Add(blocks.Cost(t.Block, b.Paid()))
	}
	v.Cost = v.Advance.Add(v.Rest)
	v.Saved = v.OnDemand.Sub(v.Cost)
	return v
}

// Text formats the plan for people.
func (v Blocks) Text(p show.Place) string {
	dollars := func(a money.Amount) string { return money.Format(a, money.USD, 2) }
	var b strings.Builder
	title := show.Clean(v.Region) + ": "
	if len(v.Blocks) == 0 {
		b.WriteString(draw.Wrap("", title+fmt.Sprintf("no block pays. On demand the demand costs %s.", dollars(v.OnDemand)),
			p.Columns()))
		return b.String()
	}
	b.WriteString(draw.Wrap("", title+fmt.Sprintf("%s for %s, and %s on demand for the rest: %s instead of %s, which "+
		"saves %s.", draw.Count(len(v.Blocks), "block"), dollars(v.Advance), dollars(v.Rest), dollars(v.Cost),
		dollars(v.OnDemand), dollars(v.Saved)), p.Columns()))
	var rows [][]string
	for _, x := range v.Blocks {
		rows = append(rows, []string{x.Start.UTC().Format("2006-01-02 15:04"), x.End.UTC().Format("2006-01-02 15:04"),
			fmt.Sprint(x.Days), fmt.Sprint(x.Machines), dollars(x.Cost), fmt.Sprintf("%.1f %%", 100*x.Used),
			dollars(x.OnDemand.Sub(x.Cost))})
	}
	b.WriteString("\n" + draw.Grid([]draw.Column{{Name: "START (UTC)", Key: true}, {Name: "END", Least: 10},
		{Name: "DAYS", Right: true}, {Name: "MACHINES", Right: true}, {Name: "IN ADVANCE", Right: true},
		{Name: "USED", Right: true}, {Name: "SAVES", Right: true}}, rows, p.Columns()))
	says := "USED is the share of the paid hours that the demand uses."
	if v.many() {
		says += fmt.Sprintf(" Amazon sells at most %d machines in one block: buy larger ones in parts.", blocks.MostInBlock)
	}
	b.WriteString("\n" + draw.Wrap("", says, p.Columns()))
	return b.String()
}

func (v Blocks) many() bool {
	for _, x := range v.Blocks {
		if x.Machines > blocks.MostInBlock {
			return true
		}
	}
	return false
}
