package show

import (
	"fmt"
	"strings"

	"scrimp/internal/job/scaffold"
	"scrimp/internal/lib/draw"
)

// Written is a new job file, for --json.
type Written struct {
	File    string           `json:"file"`
	Guesses []scaffold.Guess `json:"guesses,omitempty"`
}

// Text lists the guesses and their sources.
func (w Written) Text(p Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", fmt.Sprintf("Wrote %s. Its cost is unknown until it gives work.time: scrimp profile %s "+
		"measures it, then scrimp plan %s says what it would cost.", w.File, w.File, w.File), p.Columns()))
	widest := 0
	for _, g := range w.Guesses {
		widest = max(widest, len(g.Field))
	}
	if len(w.Guesses) > 0 {
		b.WriteString("Guessed, have a look at them:\n")
	}
	for _, g := range w.Guesses {
		b.WriteString(draw.Wrap(fmt.Sprintf("  %-*s  ", widest, g.Field), g.Value, p.Columns()))
		b.WriteString(draw.Wrap(fmt.Sprintf("  %-*s  ", widest, ""), "("+g.Why+")", p.Columns()))
	}
	return b.String()
}
