// Package proposals keeps what people expect of the jobs that they propose, ranks the jobs that wait for approval, and
// compares what was expected with what came of it.
package proposals

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// Within is how long a proposal waits for approval, in real time.
const Within = 30 * 24 * time.Hour

const (
	// madeRoute names the record of a proposal in the audit trail. It is no route of the API, so no request writes it.
	madeRoute    = "proposal"
	outcomeRoute = "POST /v1/proposals/{id}/outcome"
)

// record is a proposal as the audit trail keeps it.
type record struct {
	Team string `json:"team,omitempty"`
	client.Proposing
	Currency money.Currency   `json:"currency"`
	Cost     *[3]money.Amount `json:"cost"`
}

// Check returns what is wrong with a proposal, or nil.
func Check(p *client.Proposing) *reply.Refusal {
	no := &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "the proposal is not complete"}
	switch {
	case !says(p.Why):
		no.Field, no.Fix = "proposal.why", "say why the job is worth its cost: who approves it reads that"
	case p.Value != nil && p.Value.Sign() < 0:
		no.Field, no.Fix = "proposal.value", "a value is 0 or more: leave it out if it is unknown"
	case p.Value == nil && !says(p.ValueText):
		no.Field, no.Fix = "proposal.value", "say what the result is worth: an amount in value, or words in value_text"
	default:
		return nil
	}
	return no
}

// says reports whether a text has a character that people see.
func says(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

// Of returns the event that records a proposal. cost is the planned cost in dollars: 10 %, median and 90 %; nil:
// unknown.
func Of(r *http.Request, g *auth.Gate, b core.JobSubmitted, p *client.Proposing, cost *[3]float64) (core.Event, error) {
	made := record{Team: b.Terms.Owner.Team, Proposing: *p, Currency: b.Terms.Currency}
	if cost != nil && made.Currency == money.USD {
		made.Cost = new([3]money.Amount)
		for i, f := range cost {
			var ok bool
			if made.Cost[i], ok = money.Estimated(f); !ok || made.Cost[i].Sign() < 0 {
				made.Cost = nil
				break
			}
		}
	}
	text, err := json.Marshal(made)
	if err != nil {
		return core.Event{}, fmt.Errorf("write the proposal of %s: %w", b.Job, err)
	}
	act := auth.CallOf(r).Act
	act.At, act.Route, act.Object, act.Outcome, act.Detail = time.Now().UTC(), madeRoute, b.Job, "done", string(text)
	return g.Event(r, core.Audited{Act: act}), nil
}

// proposal is a proposal that was read from the audit trail.
type proposal struct {
	record
	act identity.Act
	seq uint64

	outcome   *client.ProposalOutcome
	outcomeBy string
	outcomeAt time.Time
}
