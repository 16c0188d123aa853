package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// A program that uses a secret as the name of a metric does not bring it into the log: not in its
// progress file, its output, the name of a broken metric, or a checkpoint's record.
func TestMask_HidesSecretsInMetricNames(t *testing.T) {
	t.Parallel()
	a := assign(t, "")
	a.Secrets = map[string]string{"KEY": "s3cr3t-value"}
	a.Args, a.Command = nil, `echo '{"step":5,"s3cr3t-value":2,"loss/s3cr3t-value":NaN,"accuracy":1}' >> "$SCRIMP_PROGRESS_FILE"
echo '{"step":6,"a-s3cr3t-value":2}'`
	r := newRig(t, a)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	var step api.Step
	for _, m := range r.server.applied {
		if text, _ := json.Marshal(m); strings.Contains(string(text), "s3cr3t") {
			t.Errorf("the server receives %s", text)
		}
		if m.Step != nil && m.Step.Metrics["accuracy"] == 1 {
			step = *m.Step
		}
	}
	if step.Metrics["************"] != 2 || len(step.Broken) != 1 || step.Broken[0] != "loss/************" {
		t.Errorf("its progress is %+v", step)
	}
}

// The reason for a job's end and for a refused checkpoint contain no secret either.
func TestMask_HidesSecretsInMessages(t *testing.T) {
	t.Parallel()
	a := assign(t, "")
	a.Secrets = map[string]string{"KEY": "s3cr3t-value"}
	a.Args = []string{"/no/program/s3cr3t-value"}
	r := newRig(t, a)
	r.start()
	_ = r.end() // its result does not matter
	told := false
	for _, m := range r.server.applied {
		told = told || m.Ended != nil && strings.Contains(m.Ended.Error, "/no/program/************")
		if text, _ := json.Marshal(m); strings.Contains(string(text), "s3cr3t") {
			t.Errorf("the server receives %s", text)
		}
	}
	if !told {
		t.Errorf("the end says nothing of the program: %+v", r.server.applied)
	}
}
