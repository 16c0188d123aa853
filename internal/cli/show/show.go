// Package show formats API values as aligned text that fits a terminal. Each function gets all inputs as arguments,
// including the width and the time, so golden files can cover every table.
package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// narrowest is the smallest width of a table, in columns.
const narrowest = 60

// Place describes where text is shown. The zero Place is a file or a program: it cuts and omits nothing, and its times
// are RFC 3339.
type Place struct {
	Width int // columns; 0 for any number
	Now   time.Time
}

// Columns returns the maximum width of a table in columns; 0 means any.
func (p Place) Columns() int {
	if p.Width == 0 {
		return 0
	}
	return max(narrowest, p.Width)
}

// When formats a past time: "2h ago" for people, RFC 3339 for programs.
func (p Place) When(t time.Time) string {
	if p.Now.IsZero() {
		return t.UTC().Format(time.RFC3339)
	}
	return draw.Ago(t, p.Now)
}

// Fact writes a line of a page: a name of at most 14 columns, and its value.
func (p Place) Fact(b *strings.Builder, name, format string, args ...any) {
	// The value may contain text from programs and other users.
	text := Clean(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
	b.WriteString(draw.Wrap(fmt.Sprintf("  %-14s ", name), text, p.Columns()))
}

// Clock formats the market's time, and the speed of a simulated clock.
func (p Place) Clock(speed float64, now time.Time) string {
	if speed == 1 {
		return p.Moment(now)
	}
	return draw.SimulatedClock(speed) + ", now " + p.Moment(now)
}

// Moment formats a date and time with its zone: the local zone for people, UTC for programs.
func (p Place) Moment(t time.Time) string {
	if p.Now.IsZero() {
		return t.UTC().Format(time.RFC3339)
	}
	return t.In(p.Now.Location()).Format("2006-01-02 15:04:05 MST")
}

// Until formats a future time: "in 2h" for people, RFC 3339 for programs.
func (p Place) Until(t time.Time) string {
	switch {
	case p.Now.IsZero():
		return t.UTC().Format(time.RFC3339)
	case !t.After(p.Now):
		return "now"
	}
	return "in " + draw.Span(t.Sub(p.Now))
}

// MarketTime formats a time of the market's clock, which may be simulated, in UTC.
func (p Place) MarketTime(t time.Time) string {
	if p.Now.IsZero() {
		return t.UTC().Format(time.RFC3339)
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// Server describes the server of the data folder.
func Server(v api.Server, p Place) string {
	var b strings.Builder
	if v.PID == 0 { // the process and folder of a remote server do not matter to its users
		fmt.Fprintf(&b, "Server %s, started %s\n", v.Version, p.When(v.Started))
	} else {
		fmt.Fprintf(&b, "Server %s (process %d), started %s\n", v.Version, v.PID, p.When(v.Started))
		p.Fact(&b, "folder", "%s", v.Dir)
	}
	p.Fact(&b, "market", "%s, %s", v.Market.Name, p.Clock(v.Market.Speed, v.Market.Now))
	for _, e := range v.Engines {
		p.Fact(&b, "engine", "%s", engineLine(&e))
		for _, m := range e.Away {
			if e.Error == "" {
				p.Fact(&b, "", "%s does not answer: %s", m.Machine, m.Error)
			}
		}
	}
	p.Fact(&b, "jobs", "%d, %d of them live", v.Jobs, v.Live)
	p.Fact(&b, "events", "%d", v.Events)
	if v.Undecided > 0 {
		p.Fact(&b, "waiting", "%s", Waiting(v.Undecided))
	}
	return b.String()
}

// engineLine describes an engine: its name, kind and speed, and whether it answers.
func engineLine(e *api.Engine) string {
	machines := draw.Count(e.Machines, "machine")
	switch e.State {
	case "not_configured":
		return fmt.Sprintf("%s: not configured any more, and %s may still cost something: name it in engines.yaml again, "+
			"and restart the server", e.Name, machines)
	case "away":
		return fmt.Sprintf("%s (%s): does not answer, %s: %s", e.Name, e.Kind, machines,
			cmp.Or(e.Error, "see the server's log"))
	case "not_asked":
		return fmt.Sprintf("%s (%s): not polled yet, %s", e.Name, e.Kind, machines)
	}
	return fmt.Sprintf("%s (%s): answers, %s", e.Name, e.Kind, machines)
}

// Check is a finding of scrimp doctor.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"` // the finding and its fix
	Use  []Use  `json:"use,omitempty"`
}

// Use is the disk space of one kind of data.
type Use struct {
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

// mostName bounds the width of the column of check names.
const mostName = 20

// Doctor lists the findings. The files that belong to findings follow, ready to copy.
func Doctor(checks []Check, p Place) string {
	var b, files strings.Builder
	width := 12
	for _, c := range checks {
		width = max(width, min(mostName, len(c.Name)))
	}
	for _, c := range checks {
		word := "ok"
		if !c.OK {
			word = "FAIL"
		}
		text, file, follows := strings.Cut(c.Text, ":\n")
		if follows {
			fmt.Fprintf(&files, "\n%s, to be copied:\n\n%s\n", c.Name, strings.TrimRight(file, "\n"))
			text += " (below)"
		}
		b.WriteString(draw.Wrap(fmt.Sprintf("%-4s  %-*s ", word, width, c.Name), text, p.Columns()))
	}
	return b.String() + files.String()
}

// Verified reports the result of a log replay.
func Verified(v api.Verified, p Place) string {
	var b strings.Builder
	if !v.OK {
		b.WriteString(draw.Wrap("", "The ledger is NOT BALANCED: "+v.Problem, p.Columns()))
		return b.String()
	}
	fmt.Fprintf(&b, "Ledger balanced: the replayed log gives the same sums.\n")
	p.Fact(&b, "events", "%d replayed", v.Events)
	p.Fact(&b, "postings", "%d", v.Postings)
	p.Fact(&b, "jobs", "%d", v.Jobs)
	idle := ""
	if !v.Idle.IsZero() {
		idle = ", of which " + money.Format(v.Idle, v.Currency, 4) + " for machines that waited for a job"
	}
	p.Fact(&b, "cost", "%s%s", money.Format(v.Cost, v.Currency, 4), idle)
	p.Fact(&b, "head", "%x", v.Head[:6])
	return b.String()
}

// Executed is the output of a command on a job's machine, for --json. It is text, unlike the bytes of the API.
type Executed struct {
	Output string `json:"output"` // invalid UTF-8 is replaced
	Exit   int    `json:"exit"`
	Error  string `json:"error,omitempty"`
}

// Exec converts the result of scrimp exec for --json.
func Exec(r api.ExecResult) Executed {
	return Executed{strings.ToValidUTF8(string(r.Output), "\uFFFD"), r.Exit, r.Error}
}
