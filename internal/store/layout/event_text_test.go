package layout

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

// An event is read back byte by byte, and its row repeats nothing.
func TestLengthen_InvertsShorten(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 120, time.UTC)
	for name, c := range map[string]struct {
		event   state.Event
		another func(*store.Record)
		whole   bool // it has another form and is stored unchanged
	}{
		"a tick":    {event: state.Event{At: at, Tenant: "default", Actor: "server"}},
		"a message": {event: state.Event{At: at, Tenant: "a", Actor: "agent:j.1", Key: "j.1/7", Cause: "x"}},
		"no nanoseconds, quotes": {event: state.Event{At: at.Truncate(time.Second), Tenant: "a",
			Actor: `a","body":{}`, Key: "k"}},
		"a key with a quote":    {event: state.Event{At: at, Tenant: "a", Key: `k"`}, whole: true},
		"a tenant with a quote": {event: state.Event{At: at, Tenant: `a"`}, whole: true},
		"another zone":          {event: state.Event{At: at.In(time.FixedZone("x", 3600)), Tenant: "a"}, whole: true},
		"another key": {event: state.Event{At: at, Tenant: "a", Key: "k"}, whole: true,
			another: func(r *store.Record) { r.Key = "other" }},
		"no key in the column": {event: state.Event{At: at, Tenant: "a", Key: "k"}, whole: true,
			another: func(r *store.Record) { r.Key = "" }},
		"a later schema": {event: state.Event{At: at, Tenant: "a"}, whole: true,
			another: func(r *store.Record) { r.Event = bytes.Replace(r.Event, []byte(`"schema":1`), []byte(`"schema":2`), 1) }},
		"no event at all": {event: state.Event{At: at}, whole: true, another: func(r *store.Record) { r.Event = []byte(`{"x":1}`) }},
	} {
		c.event.Schema, c.event.Body = 1, state.AgentSilent{Attempt: `,"body":`}
		text, err := json.Marshal(c.event)
		if err != nil {
			t.Fatal(err)
		}
		r := store.Record{Tenant: c.event.Tenant, At: c.event.At, Kind: c.event.Body.Kind(), Key: c.event.Key, Event: text}
		if c.another != nil {
			c.another(&r)
		}
		before := string(r.Event)
		short := Shorten(&r)
		if whole := short == before; whole != c.whole {
			t.Errorf("%s: kept whole: %v, want %v: %s", name, whole, c.whole, short)
		}
		if !c.whole && (strings.Contains(short, r.Kind) || strings.Contains(short, `"key"`) || strings.Contains(short, `"at"`)) {
			t.Errorf("%s: its row says something twice: %s", name, short)
		}
		r.Event = []byte(short)
		r.At = r.At.UTC() // as a row is read
		if Lengthen(&r); string(r.Event) != before {
			t.Errorf("%s: written\n%s, read\n%s", name, before, r.Event)
		}
	}
}
