package state

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The fast path and the full decoder read an event alike, and both refuse broken input.
func TestEventUnmarshal_FastPathAgreesWithFull(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	var texts []string
	for _, e := range []Event{
		{At: at, Schema: Schema, Tenant: "default", Body: Tick{}},
		{At: at, Schema: Schema, Tenant: "default", Actor: "user:ann", Cause: "launch/j.1", Key: "k", Body: JobEnded{Job: "j", Save: true}},
		{At: at, Schema: Schema, Tenant: "default", Actor: `user:"ann" \ é <&>`, Body: JobEnded{Job: `},"body":{`}},
		{At: at, Schema: Schema, Tenant: "", Key: `,"body":`, Body: AgentClaimed{Attempt: "j.1"}},
		{Schema: Schema, Body: InstanceEnded{Instance: "i", Until: at, Cause: "terminated"}},
	} {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	good := texts[1]
	for from, to := range map[string]string{
		`"schema":1`: `"schema":99`, `"at":"2026`: `"at":"x026`, `"tenant":"default",`: ``, `,"body"`: `,"other":{},"body"`,
		`{"kind":`: `{ "kind":`, `"job_ended"`: `"job_unknown"`, `"job":"j"`: `"job":7`, `"key":"k",`: `"key":"k","key":"l",`,
		`"user:ann"`: "\"user:\x01\"", `true}}`: `true}`, `"schema":`: `"schema":-`, `"default"`: "\"\xff\"",
	} {
		if text := strings.Replace(good, from, to, 1); text != good {
			texts = append(texts, text)
		} else {
			t.Errorf("%s is not in %s", from, good)
		}
	}
	for n := range good {
		texts = append(texts, good[:n])
	}
	read := 0
	for _, text := range texts {
		var fast, slow Event
		wrong, other := fast.UnmarshalJSON([]byte(text)), slow.UnmarshalJSON([]byte(" "+text))
		if (wrong == nil) != (other == nil) || wrong == nil && !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s\nreads as %+v, %v\nand as   %+v, %v", text, fast, wrong, slow, other)
		}
		if _, _, ok := new(Event).readAppended([]byte(text)); ok {
			read++
		}
	}
	if read < 4 {
		t.Errorf("%d of the texts were read in one go", read)
	}
}

// The same holds for facts.
func TestDecodeFacts_FastPathAgreesWithFull(t *testing.T) {
	for _, text := range []string{
		`["job_queued",{"job":"j"}]`, `["job_queued",{"job":"a\"},\"b"}]`, `["job_queued",{"job":"j"},"rules_set",{}]`, `[]`,
		`["rules_set",{}]`, `["rules_set",{}`, `["rules_set",{}]]`, `["nobody_knows",{}]`, `["rules_set"]`, `["job_queued",{"job":7}]`,
		`["job_queued",{"job":"j"},"rules_set"]`, `{"a":1}`, `x`,
	} {
		fast, wrong := DecodeFacts(json.RawMessage(text))
		slow, other := DecodeFacts(json.RawMessage(" " + text))
		if (wrong == nil) != (other == nil) || wrong == nil && !reflect.DeepEqual(fast, slow) {
			t.Errorf("%s reads as %+v, %v, and as %+v, %v", text, fast, wrong, slow, other)
		}
	}
}
