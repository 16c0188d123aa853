package state

import (
	"encoding/json"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// A damaged or forged snapshot is refused, or restored to a state that round-trips.
func FuzzRestore(f *testing.F) {
	s, err := New().Snapshot()
	must.Do(f, err)
	f.Add([]byte(s))
	f.Add([]byte(`{"head":{"version":0}}`))
	f.Add([]byte(`{"head":null,"parts":[{"jobs":[{}]}]}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Restore(text)
		if err != nil {
			return
		}
		again, err := got.Snapshot()
		if err != nil {
			return // a number that JSON has no word for
		}
		if _, err := Restore(again); err != nil {
			t.Errorf("%q is read, and what it says of itself is not: %v", text, err)
		}
	})
}

// Any bytes are decoded as an event or refused.
func FuzzEvent(f *testing.F) {
	for _, b := range []Body{Tick{}, JobSubmitted{Job: "j"}, InstanceEnded{Instance: "i", Cause: "terminated"}} {
		text, err := json.Marshal(Event{At: time.Unix(0, 0).UTC(), Schema: Schema, Tenant: "t", Body: b})
		must.Do(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"kind":"tick","body":{"a":[[[[]]]]}}`))
	f.Add([]byte(`{"body":`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e Event
		if json.Unmarshal(text, &e) != nil || e.Body == nil {
			return
		}
		if again, err := json.Marshal(e); err == nil {
			var same Event
			if err := json.Unmarshal(again, &same); err != nil || same.Body.Kind() != e.Body.Kind() {
				t.Errorf("%q is read, and written as %q, which is not: %v", text, again, err)
			}
		}
	})
}
