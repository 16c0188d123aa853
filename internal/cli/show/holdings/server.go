package holdings

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/storage"
)

// Server is the output of scrimp storage.
type Server struct {
	Currency money.Currency `json:"currency"`
	Uses     []Use          `json:"uses"` // null for users who do not see all teams
	Teams    []TeamUse      `json:"teams"`
}

// TeamUse is what the server keeps for a team.
type TeamUse struct {
	Team  string        `json:"team"`
	Kind  string        `json:"kind"`
	Bytes int64         `json:"bytes"`
	Month *money.Amount `json:"month"`
}

// ServerOf summarizes what a server keeps.
func ServerOf(s api.Storage, prices storage.Prices) Server {
	v := Server{Currency: prices.Currency, Teams: []TeamUse{}}
	for _, k := range s.Kinds {
		v.Uses = append(v.Uses, Use{Kind: k.Kind, Bytes: k.Bytes, Month: amount(prices.Disk(k.Bytes))})
	}
	for _, t := range s.Teams {
		v.Teams = append(v.Teams, TeamUse{t.Team, t.Kind, t.Bytes, amount(prices.Disk(t.Bytes))})
	}
	return v
}

// Text formats the result for people.
func (v Server) Text(p show.Place) string {
	var b strings.Builder
	var sum int64
	var rows [][]string
	for _, u := range v.Uses {
		sum += u.Bytes
		rows = append(rows, []string{u.Kind, show.Bytes(u.Bytes), cents(u.Month, v.Currency)})
	}
	columns := []draw.Column{{Name: "KIND", Key: true}, {Name: "SIZE", Right: true}, {Name: "A MONTH", Right: true}}
	if len(rows) > 0 {
		fmt.Fprintf(&b, "%s", draw.Wrap("", "The server keeps "+show.Bytes(sum)+" in its data folder:", p.Columns()))
		b.WriteString(draw.Grid(columns, rows, p.Columns()))
	}
	rows = nil
	for _, t := range v.Teams {
		rows = append(rows, []string{show.Named(t.Team), t.Kind, show.Bytes(t.Bytes), cents(t.Month, v.Currency)})
	}
	if len(rows) > 0 {
		columns = append([]draw.Column{{Name: "TEAM", Least: 8}}, columns...)
		b.WriteString("\n" + draw.Grid(columns, rows, p.Columns()))
	}
	b.WriteString("\n" + draw.Wrap("", "scrimp gc removes what jobs that are over have left; --dry-run lists it first. A "+
		"price of the store local in --price gives the costs.", p.Columns()))
	return b.String()
}
