package spec

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// All forms of notify are read, and the log's form is read back the same. A webhook alone stays a text in the log.
func TestNotify_SurvivesTheLog(t *testing.T) {
	for text, want := range map[string]Notify{
		"notify: https://x/y":                               {Webhook: "https://x/y"},
		"notify: {webhook: https://x/y}":                    {Webhook: "https://x/y"},
		"notify: {email: ann@x}":                            {Email: []string{"ann@x"}},
		"notify: {email: [ann@x, b.c+d@x.org], on: [done]}": {Email: []string{"ann@x", "b.c+d@x.org"}, On: []string{Done}},
		"deadline: in 6h\nnotify: {webhook: https://x/y, on: [late, over_budget]}": {Webhook: "https://x/y",
			On: []string{Late, OverBudget}},
	} {
		j, _, err := Parse(Run, "job.yaml", []byte("command: 'true'\n"+text+"\n"), "job", time.Unix(0, 0))
		if err != nil || !reflect.DeepEqual(j.Notify, want) {
			t.Errorf("%s: %+v %v", text, j.Notify, err)
			continue
		}
		b, err := j.Encode()
		must.Do(t, err)
		again, err := Decode(b)
		if err != nil || !reflect.DeepEqual(again.Notify, want) || again.Hash() != j.Hash() {
			t.Errorf("%s: read back as %+v, %v", b, again.Notify, err)
		}
		var fields map[string]json.RawMessage
		must.Do(t, json.Unmarshal(b, &fields))
		if alone := want.Email == nil && want.On == nil; alone && string(fields["notify"]) != `"https://x/y"` {
			t.Errorf("%s", b)
		}
	}
	j, err := Decode([]byte(`{"name":"j","command":"true"}`))
	if b, _ := j.Encode(); err != nil || string(b) != `{"name":"j","command":"true"}` {
		t.Errorf("%s %v", b, err)
	}
}

// What cannot be reported, or to whom, is refused with the field.
func TestNotify_RefusesWhatItCannotReport(t *testing.T) {
	for text, field := range map[string]string{
		"notify: http://a:99999/x": "notify.webhook", "notify: http://a:0": "notify.webhook",
		"notify: ftp://x": "notify.webhook", "notify: ann@x.org": "notify.webhook", "notify: {email: [ann]}": "notify.email[0]",
		"notify: {email: [\"a@b\\r\\nBcc: c@d\"]}": "notify.email[0]", "notify: {email: ['Ann <a@b>']}": "notify.email[0]",
		"notify: {email: [a@b, a@b]}": "notify.email[1]", "notify: {email: [a@-b]}": "notify.email[0]",
		"notify: {email: [a@b], on: [done, done]}": "notify.on[1]", "notify: {email: [a@b], on: [started]}": "notify.on[0]",
		"notify: {on: [done]}": "notify.on", "notify: {email: [a@b], on: [late]}": "notify.on",
		"notify: {email: [a@b], to: c@d}": "notify.to",
		"notify: {email: [a@b, a@c, a@d, a@e, a@f, a@g, a@h, a@i, a@j, a@k, b@b, b@c, b@d, b@e, b@f, b@g, b@h, b@i, b@j, b@k, c@b]}": "notify.email",
	} {
		_, _, err := Parse(Run, "job.yaml", []byte("command: 'true'\n"+text+"\n"), "job", time.Unix(0, 0))
		var list Problems
		if errors.As(err, &list); len(list) != 1 || list[0].Field != field || list[0].Fix == "" && field != "notify.to" {
			t.Errorf("%s: %v, want %s", text, err, field)
		}
	}
}
