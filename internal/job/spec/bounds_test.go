package spec

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A field beyond its bound is reported with the bound before any other problem. A field at its bound is accepted.
func TestParse_EveryFieldHasBound(t *testing.T) {
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
		{"notify: https://x/" + long(2048), "notify.webhook", "2048"}, {"env: {A: " + long(32<<10+1) + "}", "env.A", "32768"},
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

// A budget is above zero and within the bounds of amounts, which the message names.
func TestParseBudget_NamesItsBounds(t *testing.T) {
	for _, text := range []string{"", "0", "-4", "1e308", "1000000000000.01", strings.Repeat("9", 5000)} {
		if _, err := ParseBudget(text); err == nil || !strings.Contains(err.Error(), "above zero and up to $1000000000000") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	for _, text := range []string{"0.01", "$1000000000000"} {
		if _, err := ParseBudget(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Teams, projects and tags have one spelling, so that no spelling evades a limit.
func TestParse_ChargedNamesHaveOneSpelling(t *testing.T) {
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

// Every number of a job file has a bound, and a larger number is reported with the field and a fix.
func TestParse_EveryNumberHasBound(t *testing.T) {
	for of, fields := range layout {
		for i, f := range fields {
			kind := of.Field(i).Type
			for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
				kind = kind.Elem()
			}
			_, typed := typeKinds[kind]
			if number := kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Float64; (number || typed) && kindOf(kind, f.tag) == nil {
				t.Errorf("%v.%s has no kind of number: give it a tag such as as:\"count\"", of, f.name)
			}
		}
	}
	for _, c := range []struct{ text, field, most string }{
		{"budget: $150000000000000000000000000", "budget.dollars", "$1000000000000"}, {"budget: $1000000000000", "", ""},
		{"work: {time: 2562047h47m}", "work.time", "87600h"}, {"work: {time: 87600h}", "", ""},
		{"work: {steps: 200B}", "work.steps", "100000000000"}, {"work: {steps: 20B}", "", ""},
		{"budget: {gpu_hours: 1.7e308}", "budget.gpu_hours", "2000000"}, {"budget: {gpu_hours: 2M}", "", ""},
		{"deadline: 9999-12-31T23:59:59Z", "deadline", "ten years"}, {"deadline: in 87601h", "deadline", "ten years"},
		{"deadline: in 87600h", "", ""}, {"idle: 100000h", "idle", "87600h"}, {"max_price: $2000000", "max_price", "$1000000"},
		{"budget: {wall_clock: 100000h}", "budget.wall_clock", "87600h"}, {"work: {epochs: 1e300}", "work.epochs", "1000000000"},
		{"work: {tokens: 9000000T}", "work.tokens", "1000000000000000"}, {"retry: {max: 10B}", "retry.max", "1000000000"},
		{"metric: {name: loss, target: -1e200}", "metric.target", "-1e+150"}, {"metric: {name: loss, target: -1e9}", "", ""},
		{"resources: {memory: 9000TiB}", "resources.memory", "8192TiB"}, {"resources: {cpus: 1050000000}", "resources.cpus", "1000000000"},
		{"any_of: [{name: a, args: [x], throughput: 1e7x}]", "any_of[0].throughput", "1000000"},
		{"checkpoint: {dir: a, interval: 100000h}", "checkpoint.interval", "ten years"}, {"signal: USR1@100000h", "signal", "ten years"},
		{"checkpoint: {dir: a, move_cost: $1000000000001, move_time: 1s}", "checkpoint.move_cost", "$1000000000000"},
	} {
		_, _, err := Parse(Run, "job.yaml", []byte("command: 'true'\n"+c.text+"\n"), "job", time.Unix(0, 0))
		var list Problems
		errors.As(err, &list)
		if c.field == "" && err != nil || c.field != "" && (len(list) != 1 || list[0].Field != c.field && list[0].Field+".dollars" != c.field ||
			!strings.Contains(list[0].Cause, c.most) || list[0].Fix == "") {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
