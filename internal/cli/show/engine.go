package show

import (
	"fmt"
	"slices"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
)

// Engine is an engine as printed by scrimp engine list.
type Engine struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	State    string `json:"state"`
	Machines int    `json:"machines"`
	Error    string `json:"error,omitempty"`
	// Away lists its machines that do not answer.
	Away []api.AwayEngine `json:"away,omitempty"`
	// Joined lists its machines that connect to the server.
	Joined []api.JoinedMachine `json:"joined,omitempty"`
	// Bills is the export of its bill that the server fetches.
	Bills *api.BillExport `json:"bills,omitempty"`
}

// Engines adds the server's state to the engines of the file. It marks engines that only one of the two has.
func Engines(file []Engine, server []api.Engine) []Engine {
	for n := range file {
		at := slices.IndexFunc(server, func(e api.Engine) bool { return e.Name == file[n].Name })
		if at < 0 {
			file[n].State = "added since the server started: scrimp server stop"
			continue
		}
		e := server[at]
		file[n].State, file[n].Machines, file[n].Error = e.State, e.Machines, e.Error
		file[n].Joined, file[n].Away, file[n].Bills = e.Joined, e.Away, e.Bills
	}
	for _, e := range server {
		if !slices.ContainsFunc(file, func(f Engine) bool { return f.Name == e.Name }) {
			file = append(file, Engine{Name: e.Name, Kind: e.Kind, State: "removed", Machines: e.Machines, Error: e.Error})
		}
	}
	return file
}

// EngineList formats engines, followed by the reasons why some do not answer.
func EngineList(list []Engine, p Place) string {
	rows := make([][]string, len(list))
	for n, e := range list {
		rows[n] = []string{e.Name, e.Kind, fmt.Sprint(e.Machines), e.State}
	}
	text := draw.Grid([]draw.Column{{Name: "ENGINE"}, {Name: "KIND"}, {Name: "MACHINES", Right: true}, {Name: "STATE",
		Least: 12}},
		rows, p.Columns())
	for _, e := range list {
		if e.Error != "" {
			text += draw.Wrap(e.Name+": ", e.Error, p.Columns())
		}
		for _, m := range e.Away {
			if e.Error == "" && !slices.ContainsFunc(e.Joined, func(j api.JoinedMachine) bool { return j.Name == m.Machine }) {
				text += draw.Wrap(m.What()+" does not answer: ", m.Error, p.Columns())
			}
		}
		for _, m := range e.Joined {
			said := "has not joined"
			if !m.Since.IsZero() {
				said = fmt.Sprintf("joined %s from %s", p.When(m.Since), m.From)
			}
			text += draw.Wrap(e.Name+": ", m.Name+" "+said, p.Columns())
		}
		if e.Bills != nil {
			text += BillExport(*e.Bills, p)
		}
	}
	return text
}

// BillExport says when the server fetched an export, what it imported, and what it could not.
func BillExport(e api.BillExport, p Place) string {
	said := "not fetched yet"
	switch {
	case e.Error != "":
		said = fmt.Sprintf("not read %s: %s", p.When(e.Tried), Clean(e.Error))
	case !e.Fetched.IsZero():
		said = "fetched " + p.When(e.Fetched)
	}
	if !e.Next.IsZero() {
		said += "; next " + p.Until(e.Next)
	}
	text := draw.Wrap(e.Engine+": ", fmt.Sprintf("bills in %s %s", Clean(e.From), said), p.Columns())
	const shown = 12 // a year
	for _, b := range e.Periods[:min(len(e.Periods), shown)] {
		text += draw.Wrap("  ", billPeriod(b, p), p.Columns())
	}
	if more := len(e.Periods) - shown; more > 0 {
		text += fmt.Sprintf("  and %d older, as scrimp bill list --json lists them\n", more)
	}
	return text
}

// billPeriod says what became of a billing period.
func billPeriod(b api.BillPeriod, p Place) string {
	said := "no import yet"
	if !b.Imported.IsZero() {
		said = fmt.Sprintf("%s, imported %s", draw.Count(b.Parts, "file"), p.When(b.Imported))
	}
	if b.Unread > 0 {
		said += fmt.Sprintf(", %s not read", draw.Count(b.Unread, "row"))
	}
	if b.Problem != "" {
		said += "; not imported: "
		if b.Key != "" {
			said += Clean(b.Key) + ": "
		}
		said += Clean(b.Problem)
	}
	return b.Month + ": " + said
}
