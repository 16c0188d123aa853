package spec

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var settingsNow = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// A setting acts like the same text in the file, and replaces the file's value, even an invalid one.
func TestSetting_ActsLikeFieldOfFile(t *testing.T) {
	for _, c := range []struct {
		s       Setting
		in, out string // lines of the file: what it says, and what it would have to say
	}{
		{Setting{"--name", "name", "lm-2"}, "name: lm", "name: lm-2"},
		{Setting{"--deadline", "deadline", "in 6h"}, "deadline: 2020-01-01T00:00:00Z", "deadline: in 6h"},
		{Setting{"--deadline", "deadline", "none"}, "deadline: in 2h", ""},
		{Setting{"--deadline", "deadline", "in 6h"}, "deadline: [what]", "deadline: in 6h"},
		{Setting{"--budget", "budget.dollars", "$7"}, "budget: $5", "budget: $7"},
		{Setting{"--budget", "budget.dollars", "7"}, "budget: nonsense", "budget: $7"},
		{Setting{"--budget", "budget.dollars", "$7"}, "budget: {dollars: $5, gpu_hours: 4}", "budget: {dollars: $7, gpu_hours: 4}"},
		{Setting{"--budget", "budget.dollars", "none"}, "budget: {dollars: $5, gpu_hours: 4}", "budget: {gpu_hours: 4}"},
		{Setting{"--gpu", "resources.accelerator", "H100:8"}, "resources: {cpus: 4, accelerator: A100}",
			"resources: {cpus: 4, accelerator: \"H100:8\"}"},
		{Setting{"--any-gpu", "resources.accelerator", AnyAccelerator}, "resources: {accelerator: \"A100:1..8\"}",
			"resources: {accelerator: \"any:1..8\"}"},
		{Setting{"--any-gpu", "resources.accelerator", AnyAccelerator}, "", "resources: {accelerator: any}"},
		{Setting{"--spot", "resources.capacity", "spot"}, "resources: {capacity: [on-demand, reserved]}",
			"resources: {capacity: [spot]}"},
		{Setting{"--priority", "priority", "low"}, "priority: urgent", "priority: low"},
		{Setting{"--image", "image", "ghcr.io/lab/train:v3"}, "image: Not An Image", "image: ghcr.io/lab/train:v3"},
		{Setting{"--image", "image", "none"}, "image: ghcr.io/lab/train:v3", ""},
		{Setting{"--retry", "retry.max", "3"}, "retry: {max: 5, codes: [1]}", "retry: {max: 3, codes: [1]}"},
	} {
		got, _, err := Parse(Run, "job.yaml", []byte("command: a\n"+c.in+"\n"), "j", settingsNow, c.s)
		want, _, wrong := Parse(Run, "job.yaml", []byte("command: a\n"+c.out+"\n"), "j", settingsNow)
		if wrong != nil {
			t.Fatal(wrong)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s over %q: %v\n%+v\n%+v", c.s.Flag, c.s.Text, c.in, err, got, want)
		}
		made, err := FromCommand([]string{"a"}).Set(Run, settingsNow, c.s)
		if err != nil {
			t.Errorf("%s %s of a command: %v", c.s.Flag, c.s.Text, err)
		}
		if c.s.Text != "none" && reflect.DeepEqual(made, FromCommand([]string{"a"})) {
			t.Errorf("%s %s of a command changes nothing", c.s.Flag, c.s.Text)
		}
	}
}

// A problem of a setting names its flag, in the words of the file, once.
func TestSetting_ProblemNamesFlag(t *testing.T) {
	const alternatives = "any_of: [{name: b, resources: {accelerator: T4}}]\n"
	for _, c := range []struct {
		s          Setting
		file, want string
	}{
		{Setting{"--name", "name", "Not This"}, "", "`--name` is \"Not This\": use small letters"},
		{Setting{"--deadline", "deadline", "2020-01-01T00:00:00Z"}, "deadline: in 2h\n", "`--deadline` has passed already"},
		{Setting{"--deadline", "deadline", "soon"}, "", "`--deadline` is wrong ("},
		{Setting{"--budget", "budget.dollars", "-3"}, "budget: $5\n", "`--budget` is"},
		{Setting{"--budget", "budget.dollars", "much"}, "budget: $5\n", "`--budget` is wrong ("},
		{Setting{"--gpu", "resources.accelerator", "H100:0"}, "", "`--gpu` is \"H100:0\""},
		{Setting{"--priority", "priority", "urgent"}, "", "`--priority` is \"urgent\": it is one of critical, normal, low"},
		{Setting{"--retry", "retry.max", "often"}, "", "`--retry` is wrong ("},
		{Setting{"--gpu", "resources.accelerator", "H100"}, alternatives, "`--gpu` does not reach the alternatives"},
		{Setting{"--spot", "resources.capacity", "spot"}, "ladder: [{capacity: spot, for: 5m}, {capacity: on-demand}]\n",
			"`--spot` stands against `ladder`"},
	} {
		_, _, err := Parse(Run, "job.yaml", []byte("command: a\n"+c.file), "j", settingsNow, c.s)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %s: %v, not %s", c.s.Flag, c.s.Text, err, c.want)
		}
		if c.file != alternatives && !strings.HasPrefix(c.file, "ladder") {
			if _, err = FromCommand([]string{"a"}).Set(Run, settingsNow, c.s); err == nil ||
				!strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s %s of a command: %v, not %s", c.s.Flag, c.s.Text, err, c.want)
			}
		}
	}
	_, _, err := Parse(Run, "job.yaml", []byte("command: a\nnonsense: 1\n"), "j", settingsNow, Setting{"--name", "name", "?"})
	if list, ok := err.(Problems); !ok || len(list) != 2 || //nolint:errorlint // Problems are never wrapped
		!slices.ContainsFunc(list, func(p Problem) bool { return p.Field == "nonsense" && p.Line == 2 }) {
		t.Errorf("with a file that is wrong too: %v", err)
	}
}
