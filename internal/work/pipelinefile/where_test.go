package pipelinefile

import (
	"fmt"
	"io/fs"
	"testing"
)

// The server's refusals name fields of the API, and users see the line of their file.
func TestWhere_FindsTheLineOfAFieldOfTheAPI(t *testing.T) {
	t.Parallel()
	const text = "budget: {dollars: 5,\n  gpu_hours: 1}\nstages:\n  two:\n    cmd: b\n    deps: [x]\n    outs: [y]\n" +
		"  one:\n    cmd: a\n    deps:\n      - in\n      - gone\n    outs: [x]\n    data: [{path: s3://b/c}]\n"
	f, err := Parse("p.yaml", []byte(text), now, func(string) ([]byte, error) { return nil, fs.ErrNotExist })
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprintf("pipeline.stages[%d]", f.Spec.Find("one"))
	for _, c := range []struct {
		sent, field string
		line        int
	}{
		{first + ".deps[1]", "stages.one.deps[1]", 12}, {first + ".job.data[0].path", "stages.one.data[0].path", 14},
		{first + ".job.command", "stages.one.cmd", 9}, {first, "stages.one", 8}, {first + ".job.grace", "stages.one.grace", 8},
		{"budget.gpu_hours", "budget.gpu_hours", 2}, {"pipeline.sample", "sample", 0}, {"name", "name", 0},
		{"key", "", 0}, {"pipeline.stages[7].deps", "", 0},
	} {
		if field, line := f.Index.Where(c.sent); field != c.field || line != c.line {
			t.Errorf("%s: %s, line %d, want %s, line %d", c.sent, field, line, c.field, c.line)
		}
	}
}
