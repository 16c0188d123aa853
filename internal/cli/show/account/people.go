// Package account formats users, teams, tokens and the audit log as text.
package account

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

func grants(list []api.Grant) string {
	var words []string
	for _, g := range list {
		if g.Team == api.Everywhere {
			words = append(words, string(g.Role)+" of all teams")
		} else {
			words = append(words, string(g.Role)+" of "+g.Team)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// Me describes the logged-in user and the server.
func Me(server string, v api.Me, p show.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Logged in to %s\n", server)
	p.Fact(&b, "user", "%s", v.User)
	p.Fact(&b, "may be", "%s", grants(v.Grants))
	if v.Expires != nil {
		p.Fact(&b, "token", "%s, until %s", v.Token, p.Moment(*v.Expires))
	}
	return b.String()
}

// Users formats the table of users.
func Users(list []api.User, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No users. scrimp users set NAME --grant admin makes the first.", p.Columns())
	}
	var rows [][]string
	for _, u := range list {
		state := "on"
		if u.Off {
			state = "off"
		}
		rows = append(rows, []string{u.Name, state, p.When(u.Made), show.OrDash(show.Clean(u.Email)), grants(u.Grants)})
	}
	return draw.Grid([]draw.Column{{Name: "USER", Key: true}, {Name: "STATE"}, {Name: "MADE", Leaves: 1},
		{Name: "EMAIL", Leaves: 2}, {Name: "MAY BE", Least: 16}}, rows, p.Columns())
}

// pronoun returns the word for n things.
func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// Erasure describes what the erasure of a user does, or has done.
func Erasure(name string, v api.Erasure, p show.Place) string {
	text := fmt.Sprintf("%s is erased: what the user did is now shown as that of %s. "+
		"%s went with the name.", name, v.As, draw.Count(v.Tokens, "token"))
	if v.DryRun {
		text = fmt.Sprintf("Nothing is erased yet: --yes forgets the name and the address of %s for ever, shows what the "+
			"user did as that of %s, and revokes %s.", name, v.As, draw.Count(v.Tokens, "token"))
	}
	if v.Jobs > 0 {
		text += fmt.Sprintf(" %s of the user will run on, unless an operator of the team ends or pauses %s.",
			draw.Count(v.Jobs, "job"), pronoun(v.Jobs))
	}
	if v.Groups > 0 {
		text += fmt.Sprintf(" %s of the user will begin jobs, unless an operator of the team ends %s: scrimp groups lists "+
			"schedules, pipelines, studies and arrays.", draw.Count(v.Groups, "group"), pronoun(v.Groups))
	}
	if v.Logged {
		text += " An older release made this user: the files of the log hold the name for ever, though nothing shows it."
	}
	return draw.Wrap("", text, p.Columns())
}

// Teams formats the table of teams.
func Teams(list []api.Team, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No teams. scrimp teams set NAME makes one.", p.Columns())
	}
	var rows [][]string
	for _, t := range list {
		projects := "any"
		if len(t.Projects) > 0 {
			projects = strings.Join(t.Projects, ", ")
		}
		room := "no limit"
		if t.Disk > 0 {
			room = show.Bytes(t.DiskUsed) + " of " + show.Bytes(t.Disk)
		}
		rows = append(rows, []string{t.Name, projects, room})
	}
	columns := []draw.Column{{Name: "TEAM", Key: true}, {Name: "PROJECTS", Least: 16}, {Name: "DISK"}}
	return draw.Grid(columns, rows, p.Columns())
}

// Tokens formats the table of tokens.
func Tokens(list []api.Token, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No tokens. scrimp tokens new USER makes one.", p.Columns())
	}
	var rows [][]string
	for _, t := range list {
		state, most := "live", "-"
		switch {
		case t.Revoked != nil:
			state = "revoked"
		case t.Off:
			state = "user off"
		case !t.Live:
			state = "expired"
		}
		if t.Most != "" && t.Most != api.Nobody {
			most = string(t.Most)
		}
		rows = append(rows, []string{t.ID, t.User, state, most, p.When(t.Made), t.Expires.UTC().Format("2006-01-02"),
			show.Clean(t.Note)})
	}
	return draw.Grid([]draw.Column{
		{Name: "ID", Key: true}, {Name: "USER", Least: 12}, {Name: "STATE"}, {Name: "AT MOST"}, {Name: "MADE", Leaves: 2},
		{Name: "UNTIL"}, {Name: "NOTE", Least: 8, Leaves: 1},
	}, rows, p.Columns())
}

// Audit formats the audit log.
func Audit(list []api.Act, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No entries.", p.Columns())
	}
	var rows [][]string
	for _, a := range list {
		token := a.Token
		if token == "" {
			token = "-"
		}
		rows = append(rows, []string{p.When(a.At), show.Clean(a.Who), show.Clean(a.Route), show.Clean(a.Object), a.Outcome,
			token,
			show.Clean(a.From), show.Clean(a.Detail)})
	}
	return draw.Grid([]draw.Column{
		{Name: "WHEN", Key: true}, {Name: "WHO", Least: 8}, {Name: "ROUTE", Least: 14}, {Name: "OBJECT", Least: 10},
		{Name: "OUTCOME"},
		{Name: "TOKEN", Leaves: 3}, {Name: "FROM", Leaves: 2}, {Name: "DETAIL", Least: 16, Leaves: 1},
	}, rows, p.Columns())
}
