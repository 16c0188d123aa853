package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// MarshalJSON writes the event with the kind of its body.
func (e Event) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	return e.Append(nil, body)
}

// Append appends the JSON form of e to b. The caller has already encoded the body.
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

// appendText appends s as the JSON string that json.Marshal writes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // json.Marshal never fails on a string
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// UnmarshalJSON reads events that this or an earlier release wrote.
func (e *Event) UnmarshalJSON(b []byte) error {
	if kind, text, ok := e.readAppended(b); ok {
		var err error
		e.Body, err = body(kind, text)
		return err
	}
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

// cutBody splits an event, as Append writes it, before its body, so that UnmarshalJSON scans the body only once. If
// the event has another form, cut is false and text is all of b.
func cutBody(b []byte) (text, body []byte, cut bool) {
	name := []byte(`,"body":`) // inside a string, the quotes would be escaped
	at := bytes.Index(b, name)
	if at < 0 || !bytes.HasPrefix(b, []byte(`{"kind":"`)) || b[len(b)-1] != '}' || bytes.ContainsAny(b[1:at], "{[") {
		return b, nil, false
	}
	return append(bytes.Clone(b[:at]), '}'), b[at+len(name) : len(b)-1], true
}

// bodies maps the kind of an event to the function that decodes its body.
var bodies = map[string]func([]byte) (Body, error){
	"tick":                         func([]byte) (Body, error) { return Tick{}, nil },
	JobSubmitted{}.Kind():          read[JobSubmitted],
	JobReviewed{}.Kind():           read[JobReviewed],
	JobEnded{}.Kind():              read[JobEnded],
	JobPaused{}.Kind():             read[JobPaused],
	JobResumed{}.Kind():            read[JobResumed],
	JobUpdated{}.Kind():            read[JobUpdated],
	MarketSeen{}.Kind():            read[MarketSeen],
	Audited{}.Kind():               read[Audited],
	IdentityChanged{}.Kind():       read[IdentityChanged],
	BudgetsSet{}.Kind():            read[BudgetsSet],
	GroupOpened{}.Kind():           read[GroupOpened],
	GroupReviewed{}.Kind():         read[GroupReviewed],
	GroupClosed{}.Kind():           read[GroupClosed],
	Spawn{}.Kind():                 read[Spawn],
	Proposed{}.Kind():              read[Proposed],
	Configured{}.Kind():            read[Configured],
	LaunchDone{}.Kind():            read[LaunchDone],
	Rehydrated{}.Kind():            read[Rehydrated],
	RehydratedGroup{}.Kind():       read[RehydratedGroup],
	LaunchRefused{}.Kind():         read[LaunchRefused],
	LaunchPending{}.Kind():         read[LaunchPending],
	LaunchExpired{}.Kind():         read[LaunchExpired],
	LaunchCancelled{}.Kind():       read[LaunchCancelled],
	BillReceived{}.Kind():          read[BillReceived],
	BillReconciled{}.Kind():        read[BillReconciled],
	IncarnationBegun{}.Kind():      read[IncarnationBegun],
	OwnershipDecided{}.Kind():      read[OwnershipDecided],
	TableReady{}.Kind():            read[TableReady],
	RoundProposed{}.Kind():         read[RoundProposed],
	InstanceEnded{}.Kind():         read[InstanceEnded],
	InterruptionAnnounced{}.Kind(): read[InterruptionAnnounced],
	InventorySeen{}.Kind():         read[InventorySeen],
	MachineRegistered{}.Kind():     read[MachineRegistered],
	MachineCleaned{}.Kind():        read[MachineCleaned],
	MachineReleased{}.Kind():       read[MachineReleased],
	TaskGone{}.Kind():              read[TaskGone],
	AgentClaimed{}.Kind():          read[AgentClaimed],
	AttemptStarted{}.Kind():        read[AttemptStarted],
	Progressed{}.Kind():            read[Progressed],
	CheckpointSaved{}.Kind():       read[CheckpointSaved],
	CheckpointFailed{}.Kind():      read[CheckpointFailed],
	CheckpointRefused{}.Kind():     read[CheckpointRefused],
	NoticeGiven{}.Kind():           read[NoticeGiven],
	UsageSeen{}.Kind():             read[UsageSeen],
	AttemptEnded{}.Kind():          read[AttemptEnded],
	AgentSilent{}.Kind():           read[AgentSilent],
}

func body(kind string, b []byte) (Body, error) {
	read := bodies[kind]
	if read == nil {
		return nil, fmt.Errorf("event of unknown kind %q: use a newer program", kind)
	}
	return read(b)
}

func read[T Body](b []byte) (Body, error) {
	var v T
	err := decode(b, &v)
	return v, err
}
