package core_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/decide/core"
	"scrimp/internal/test/must"
)

// The hand-written encoding of an event equals that of encoding/json.
func TestEvent_EncodesLikeTheLibrary(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	for _, text := range []string{"", "ann", `a "quoted" \ name`, "<b>&", "tab\tand\x01", "ü \u2028 \xff", "del\x7f", `,"body":`, `{"kind":"tick","body":{}}`} {
		for _, body := range []core.Body{core.Tick{}, core.JobSubmitted{Job: text, Spec: json.RawMessage(`{"a": "<b>"}`)}} {
			e := core.Event{At: at, Schema: core.Schema, Tenant: text, Actor: text, Cause: text, Key: text, Body: body}
			want, err := json.Marshal(struct {
				Kind   string    `json:"kind"`
				At     time.Time `json:"at"`
				Schema int       `json:"schema"`
				Tenant string    `json:"tenant"`
				Actor  string    `json:"actor,omitempty"`
				Cause  string    `json:"cause,omitempty"`
				Key    string    `json:"key,omitempty"`
				Body   core.Body `json:"body"`
			}{body.Kind(), at, core.Schema, text, text, text, text, body})
			must.Do(t, err)
			part, err := json.Marshal(body)
			must.Do(t, err)
			if got, err := e.Append(nil, part); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q: %v\n%s\nwant\n%s", text, err, got, want)
			}
			var back core.Event
			if err := json.Unmarshal(want, &back); err != nil {
				t.Errorf("%s: %v", want, err)
			}
			if again, err := json.Marshal(back); utf8.ValidString(text) && (err != nil || !bytes.Equal(again, want)) {
				t.Errorf("%q is read as\n%s, %v, and was\n%s", text, again, err, want)
			}
		}
	}
}
