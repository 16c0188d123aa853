package receipt

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Preemption is why an attempt left its seat to a critical job, and what that cost. The cost is part of the attempts'.
type Preemption struct {
	By       string        `json:"by"` // the critical job, or that it is of another team
	At       time.Time     `json:"at"` // when scrimp asked the program to save, market time
	Expected money.Amount  `json:"expected"`
	Lost     money.Amount  `json:"lost"`     // of this attempt
	StartUp  *money.Amount `json:"start_up"` // of the next attempt; null: it has not started yet
}

// Cost returns what the preemption cost so far: the lost work, and the start-up of the next attempt if it has started.
func (p *Preemption) Cost() money.Amount {
	if p.StartUp == nil {
		return p.Lost
	}
	return p.Lost.Add(*p.StartUp)
}

// preemptions writes a line for each preempted attempt.
func (r Receipt) preemptions(width int) string {
	var b strings.Builder
	for n, t := range r.Tries {
		if p := t.Preemption; p != nil {
			text := fmt.Sprintf("attempt %d by %s at %s UTC: %s of work lost, ", n+1, p.By,
				p.At.UTC().Format("2006-01-02 15:04:05"), money.Short(p.Lost, r.Currency))
			if p.StartUp == nil {
				text += "not started again yet"
			} else {
				text += fmt.Sprintf("%s to start again", money.Short(*p.StartUp, r.Currency))
			}
			b.WriteString(draw.Wrap("preempted: ", text, width))
		}
	}
	return b.String()
}

// Left says why a preempted attempt ended, to a reader of the attempt after it.
func (p *Preemption) Left(attempt string) string {
	return p.By + ", which is critical, preempted " + attempt
}
