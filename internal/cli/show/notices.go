package show

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
)

// Notices formats what became of the reports of a job, a line for each receiver and event.
func Notices(j api.Job, p Place) string {
	var b strings.Builder
	if len(j.Notices) == 0 { // of a server that lists failures only
		for _, u := range j.Undelivered {
			p.Fact(&b, "not notified", "%s of %s: %s", u.To, Words(u.Event), u.Error)
		}
	}
	for i := range j.Notices {
		n := &j.Notices[i]
		name, text := Notice(n, p)
		p.Fact(&b, name, "%s", text)
	}
	return b.String()
}

// Notice returns the name and the text of the line of one report.
func Notice(n *api.Notice, p Place) (name, text string) {
	to, tries := n.To, draw.Count(n.Tries, "time")
	if n.By == "email" {
		to = "e-mail to " + to
	}
	to += " of " + Words(n.Event)
	switch n.State {
	case api.Delivered:
		return "notified", to + ", " + p.When(n.At)
	case api.Retrying:
		text = fmt.Sprintf("%s: refused (%s), tried %s", to, n.Error, tries)
		if n.Next != nil {
			text += ", next try at " + p.Moment(*n.Next)
		}
		return "notify", text
	case api.Waiting:
		text = to + ": not sent, because this server does not send e-mail (scrimp serve --smtp)"
		if n.Tries > 0 {
			text += fmt.Sprintf("; refused before (%s), tried %s", n.Error, tries)
		}
		return "notify", text
	}
	return "not notified", fmt.Sprintf("%s: %s, tried %s", to, n.Error, tries)
}
