package layout

import (
	"bytes"
	"time"

	"scrimp/internal/store"
)

// A row stores the text of an event, as state.Event.Append writes it, without what the row's columns repeat, which is
// a third of a job's log. A shortened text begins with a comma.

// beforeBody ends the part of an event that the columns repeat. It cannot occur earlier: quotes in texts are escaped
// with a backslash.
var beforeBody = []byte(`,"body":`)

// headOf returns the start of a row's event, built from its columns.
func headOf(r *store.Record) []byte {
	b := make([]byte, 0, 128)
	b = append(append(append(b, `{"kind":"`...), r.Kind...), `","at":"`...)
	b = r.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(append(b, `","schema":1,"tenant":"`...), r.Tenant...)
	return append(b, '"')
}

// keyOf returns the key part of a row's event.
func keyOf(r *store.Record) []byte {
	if r.Key == "" {
		return nil
	}
	return append(append([]byte(`,"key":"`), r.Key...), '"')
}

// Shorten returns the record's event text for a row: all of it if it has another form.
func Shorten(r *store.Record) string {
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

// Lengthen restores the full event text of a row.
func Lengthen(r *store.Record) {
	if len(r.Event) == 0 || r.Event[0] != ',' {
		return
	}
	at := max(0, bytes.Index(r.Event, beforeBody))
	head, key := headOf(r), keyOf(r)
	whole := make([]byte, 0, len(head)+len(key)+len(r.Event))
	whole = append(append(whole, head...), r.Event[:at]...)
	r.Event = append(append(whole, key...), r.Event[at:]...)
}
