package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A field that holds more than it may is named with its bound, before anything else is said; what holds as
// much as it may is let in.
func TestEveryFieldHasABound(t *testing.T) {
	tags := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("  tag-%d: x\n", i)
		}
		return "tags:\n" + text
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct{ text, field, says string }{
		{tags(33), "tags", "more than 32 items"}, {tags(32), "", ""}, {tags(20_000), "tags", "more than 32 items"},
		{"tags: {a: " + long(129) + "}", "tags.a", "more than 128 bytes"}, {"tags: {a: " + long(128) + "}", "", ""},
		{"tags: {" + long(64) + ": a}", "tags", "key of more than 63 bytes"}, {"team: " + long(64), "team", "more than 63 bytes"},
		{"model_version: " + long(129), "model_version", "128"}, {"setup: " + long(128<<10+1), "setup", "131072"},
		{"notify: https://x/" + long(2048), "notify", "2048"}, {"env: {A: " + long(32<<10+1) + "}", "env.A", "32768"},
		{"outputs: [" + strings.Repeat("a, ", 100) + "b]", "outputs", "100 items"},
		{"progress: {pattern: '(?P<step>" + long(4096) + ")'}", "progress.pattern", "4096"},
		{"resources: {zones: [" + long(1025) + "]}", "resources.zones[0]", "1024"},
		{"any_of: [{args: [" + long(32<<10+1) + "]}]", "any_of[0].args[0]", "32768"},
	} {
		_, _, err := Parse(Run, "job.yaml", []byte("command: 'true'\n"+c.text+"\n"), "job", time.Unix(0, 0))
		var list Problems
		errors.As(err, &list)
		if c.field == "" && err != nil || c.field != "" && (len(list) != 1 || list[0].Field != c.field ||
			!strings.Contains(list[0].Cause, c.says) || list[0].Fix == "") {
			t.Errorf("%.60s: %v", c.text, err)
		}
	}
}

// Teams, projects and tags have one way to be written, so that no limit on one is evaded by another.
func TestWhatIsChargedIsWrittenInOneWay(t *testing.T) {
	for text, field := range map[string]string{"team: Chat": "team", "team: 'chat '": "team", "team: \"chat\\u200b\"": "team",
		"project: Chat": "project", "tags: {Chat: a}": "tags.Chat", "tags: {a: \"chat\\u200b\"}": "tags.a", "tags: {a: 'chat '}": "tags.a",
		"environment: \"e\\u0301\"": "environment", "model_version: \"v3\\u00ad\"": "model_version",
		"team: chat": "", "tags: {a: Chat}": "", "tags: {a: 'für alle'}": "", "model_version: V3": ""} {
		_, _, err := Parse(Run, "job.yaml", []byte("command: 'true'\n"+text+"\n"), "job", time.Unix(0, 0))
		var list Problems
		errors.As(err, &list)
		if field == "" && err != nil || field != "" && (len(list) != 1 || list[0].Field != field || list[0].Fix == "") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
