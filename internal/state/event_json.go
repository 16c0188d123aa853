package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// MarshalJSON writes the body under its kind.
func (e Event) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	return e.Append(nil, body)
}

// Append appends e in JSON to b, where its body is encoded already.
func (e Event) Append(b, body []byte) ([]byte, error) {
	at, err := e.At.MarshalJSON()
	if err != nil {
		return nil, err
	}
	b = append(append(append(b, `{"kind":"`...), e.Body.Kind()...), `","at":`...)
	b = append(append(b, at...), `,"schema":`...)
	b = append(strconv.AppendInt(b, int64(e.Schema), 10), `,"tenant":`...)
	b = appendText(b, e.Tenant)
	for _, f := range [...]struct{ name, value string }{{`,"actor":`, e.Actor}, {`,"cause":`, e.Cause},
		{`,"key":`, e.Key}} {
		if f.value != "" {
			b = appendText(append(b, f.name...), f.value)
		}
	}
	b = append(append(b, `,"body":`...), body...)
	return append(b, '}'), nil
}

// appendText appends a JSON string as json.Marshal writes it.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // it never fails on a string
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// UnmarshalJSON reads what MarshalJSON of this or an earlier release wrote.
func (e *Event) UnmarshalJSON(b []byte) error {
	type plain Event
	var v struct {
		Kind string `json:"kind"`
		plain
		Body json.RawMessage `json:"body"`
	}
	text, rest, cut := cutBody(b)
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if cut {
		v.Body = rest
	}
	if v.Schema > Schema {
		return fmt.Errorf("event has schema %d, this program knows only %d: use a newer program", v.Schema, Schema)
	}
	*e = Event(v.plain)
	var err error
	e.Body, err = body(v.Kind, v.Body)
	return err
}

// cutBody cuts an event, as Append writes it, before its body, so that the body is
// read once; the text is whole where the event has another form.
func cutBody(b []byte) (text, body []byte, cut bool) {
	name := []byte(`,"body":`) // in a text before it the quotes would have a backslash
	at := bytes.Index(b, name)
	if at < 0 || !bytes.HasPrefix(b, []byte(`{"kind":"`)) || b[len(b)-1] != '}' || bytes.ContainsAny(b[1:at], "{[") {
		return b, nil, false
	}
	return append(bytes.Clone(b[:at]), '}'), b[at+len(name) : len(b)-1], true
}

func body(kind string, b []byte) (Body, error) {
	switch kind {
	case "job_submitted":
		return read[JobSubmitted](b)
	case "job_reviewed":
		return read[JobReviewed](b)
	case "job_ended":
		return read[JobEnded](b)
	case "job_paused":
		return read[JobPaused](b)
	case "job_resumed":
		return read[JobResumed](b)
	case "job_updated":
		return read[JobUpdated](b)
	case "market_seen":
		return read[MarketSeen](b)
	case "audited":
		return read[Audited](b)
	case "identity_changed":
		return read[IdentityChanged](b)
	case "budgets_set":
		return read[BudgetsSet](b)
	case "tick":
		return Tick{}, nil
	case "configured":
		return read[Configured](b)
	case "launch_done":
		return read[LaunchDone](b)
	case "launch_refused":
		return read[LaunchRefused](b)
	case "launch_pending":
		return read[LaunchPending](b)
	case "launch_expired":
		return read[LaunchExpired](b)
	case "launch_cancelled":
		return read[LaunchCancelled](b)
	case "bill_received":
		return read[BillReceived](b)
	case "incarnation_begun":
		return read[IncarnationBegun](b)
	case "ownership_decided":
		return read[OwnershipDecided](b)
	case "table_ready":
		return read[TableReady](b)
	case "instance_ended":
		return read[InstanceEnded](b)
	case "inventory_seen":
		return read[InventorySeen](b)
	case "agent_claimed":
		return read[AgentClaimed](b)
	case "attempt_started":
		return read[AttemptStarted](b)
	case "progressed":
		return read[Progressed](b)
	case "checkpoint_saved":
		return read[CheckpointSaved](b)
	case "checkpoint_refused":
		return read[CheckpointRefused](b)
	case "notice_given":
		return read[NoticeGiven](b)
	case "usage_seen":
		return read[UsageSeen](b)
	case "attempt_ended":
		return read[AttemptEnded](b)
	case "agent_silent":
		return read[AgentSilent](b)
	}
	return nil, fmt.Errorf("event of unknown kind %q: use a newer program", kind)
}

func read[T Body](b []byte) (Body, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}
