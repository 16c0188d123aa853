package store

import (
	"bytes"
	"time"
)

// What a row's columns say of an event is cut from its text, where it stands as
// state.Event.Append writes it: a third of the log of a job. What is cut begins with a comma.

// beforeBody is where the columns' part of an event ends: in a text before it the quotes have a backslash.
var beforeBody = []byte(`,"body":`)

// headOf is how the event of a row begins, as its columns say it.
func headOf(r *Record) []byte {
	b := make([]byte, 0, 128)
	b = append(append(append(b, `{"kind":"`...), r.Kind...), `","at":"`...)
	b = r.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(append(b, `","schema":1,"tenant":"`...), r.Tenant...)
	return append(b, '"')
}

// keyOf is how the event of a row says its key.
func keyOf(r *Record) []byte {
	if r.Key == "" {
		return nil
	}
	return append(append([]byte(`,"key":"`), r.Key...), '"')
}

// shorten is the text of the record's event for a row: whole where it has another form.
func shorten(r *Record) string {
	rest, ok := bytes.CutPrefix(r.Event, headOf(r))
	at := bytes.Index(rest, beforeBody)
	if !ok || at < 0 {
		return string(r.Event)
	}
	said, ok := bytes.CutSuffix(rest[:at], keyOf(r))
	if !ok || bytes.Contains(said, []byte(`,"key":`)) {
		return string(r.Event)
	}
	return string(said) + string(rest[at:])
}

// lengthen makes the event of a row that was read whole again.
func lengthen(r *Record) {
	if len(r.Event) == 0 || r.Event[0] != ',' {
		return
	}
	at := max(0, bytes.Index(r.Event, beforeBody))
	head, key := headOf(r), keyOf(r)
	whole := make([]byte, 0, len(head)+len(key)+len(r.Event))
	whole = append(append(whole, head...), r.Event[:at]...)
	r.Event = append(append(whole, key...), r.Event[at:]...)
}
