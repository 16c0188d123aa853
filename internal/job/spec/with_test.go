package spec_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

func TestWith_SetsFieldLikeFile(t *testing.T) {
	const file = "name: a\ncommand: train # comment\nenv: {LR: \"0.1\"}\nresources:\n  accelerator: A100:2\nbudget: $5\n"
	for _, c := range []struct{ field, value, want string }{
		{"env.PRECISION", "bf16", `"PRECISION":"bf16"`},
		{"env.LR", "0.10", `"LR":"0.10"`},
		{"env.FLAG", "true", `"FLAG":"true"`},
		{"env.EMPTY", "", `"EMPTY":""`},
		{"resources.accelerator", "T4", `"accelerator":"T4"`},
		{"resources.memory", "16GiB", `"memory":"17179869184B"`},
		{"checkpoint.dir", "ckpt", `"dir":"ckpt"`},
		{"command", "train --precision bf16", `"command":"train --precision bf16"`},
		{"idle", "10m", `"idle":"10m`},
	} {
		text, err := spec.With([]byte(file), c.field, c.value)
		if err != nil {
			t.Errorf("%s: %v", c.field, err)
			continue
		}
		j, _, err := spec.Parse(spec.Run, "job.yaml", text, "a", time.Now())
		if err != nil {
			t.Errorf("%s: %v\n%s", c.field, err, text)
			continue
		}
		if got, _ := j.Encode(); !strings.Contains(string(got), c.want) {
			t.Errorf("%s=%s: %s has no %s", c.field, c.value, got, c.want)
		}
	}
}

func TestWith_RefusesInvalidField(t *testing.T) {
	const file = "command: train\nbudget: $5\nenv: &e {A: b}\nresources: *e\n"
	for field, want := range map[string]string{"": "is not a field", "a..b": "is not a field", "budget.dollars": "is not a map", "resources.cpus": "alias"} {
		if text, err := spec.With([]byte(file), field, "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", field, text, err)
		}
	}
	if _, err := spec.With([]byte(file), "env.A", "{"); err == nil {
		t.Error("an open brace is a value")
	}
	text, err := spec.With([]byte("command: a\n"), "enviroment", "x")
	must.Do(t, err)
	if _, _, err := spec.Parse(spec.Run, "job.yaml", text, "a", time.Now()); err == nil {
		t.Error("a field that does not exist is taken")
	}
}
