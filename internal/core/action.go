package core

import (
	"encoding/json"
	"fmt"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
)

// Action is something to be done outside. Key names it: the same history always
// gives the same keys, so an action repeated after a crash is recognised by
// whoever carries it out and not done twice.
type Action interface {
	Key() string
	Kind() string
}

// What the core asks for.
type (
	// Launch rents an instance for an attempt. The attempt's name is the key. Answer: LaunchDone or LaunchRefused.
	Launch struct {
		Job     string         `json:"job"`
		Attempt string         `json:"attempt"`
		Offer   market.OfferID `json:"offer"`
		MaxRate money.Rate     `json:"max_price,omitempty"`
	}
	// Terminate gives an instance back. Answer: InstanceEnded.
	Terminate struct {
		Instance string `json:"instance"`
		Attempt  string `json:"attempt,omitempty"`
		Why      string `json:"why"`
	}
	// Drain asks an attempt's agent to save and end. Answer: AttemptEnded.
	Drain struct {
		Attempt string        `json:"attempt"`
		Why     string        `json:"why"`
		Grace   time.Duration `json:"grace_ns"` // market time
	}
	// Look asks whether the offer can be had now, before anything is given up for
	// it. Answer: MarketSeen with its quote, or none where the provider cannot say.
	Look struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer"`
		Count int            `json:"count"` // of the job's looks
	}
	// Notify tells whoever the job names. It has no answer.
	Notify struct {
		Job   string `json:"job"`
		State State  `json:"state"`
		Why   string `json:"why"`
	}
)

// Key of each action, derived from the history.
func (a Launch) Key() string    { return a.Attempt }
func (a Terminate) Key() string { return "terminate/" + a.Instance }
func (a Drain) Key() string     { return "drain/" + a.Attempt }
func (a Look) Key() string      { return fmt.Sprintf("look/%s/%d", a.Job, a.Count) }
func (a Notify) Key() string    { return "notify/" + a.Job + "/" + string(a.State) }

// Kinds of actions.
func (Launch) Kind() string    { return "launch" }
func (Terminate) Kind() string { return "terminate" }
func (Drain) Kind() string     { return "drain" }
func (Look) Kind() string      { return "look" }
func (Notify) Kind() string    { return "notify" }

// EncodeActions writes actions for the log.
func EncodeActions(actions []Action) (json.RawMessage, error) {
	type tagged struct {
		Kind string `json:"kind"`
		Key  string `json:"key"`
		Do   Action `json:"do"`
	}
	list := make([]tagged, 0, len(actions))
	for _, a := range actions {
		list = append(list, tagged{a.Kind(), a.Key(), a})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode actions: %w", err)
	}
	return b, nil
}
