package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that run or simulate a job refuse fields that they do not support, with file, line, field and fix, and start
// no server. Commands that check or rank accept them.
func TestRun_RefusesUnsupportedFields(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const rest = "command: 'true'\nwork: {time: 1h, tokens: 2B}\nbudget: $9\ncheckpoint: {dir: ck}\ndata: [{path: s3://b/c, region: us-east-1}]\n"
	disk := write(t, work, "disk.yaml", "resources: {disk: 1TB}\n"+rest)
	sky := write(t, work, "sky.yaml", "compat: skypilot\n"+rest)
	for _, c := range []struct {
		line []string
		want string // empty if it is not refused
	}{
		{[]string{"run", "-y", disk}, "disk.yaml:1: `resources.disk` is not honoured until scrimp has disks that are rented by size: leave it out"},
		{[]string{"plan", disk}, "disk.yaml:1: `resources.disk`"},
		{[]string{"profile", disk}, "disk.yaml:1: `resources.disk`"},
		{[]string{"simulate", "--market", "calm", disk}, "disk.yaml:1: `resources.disk`"},
		{[]string{"plan", "--catalog", disk}, "disk.yaml:1: `resources.disk`"},
		{[]string{"check", disk}, ""},
		{[]string{"run", "-y", sky}, "sky.yaml:1: `compat`"},
		{[]string{"plan", sky}, "sky.yaml:1: `compat`"},
		{[]string{"plan", "--catalog", sky}, ""},
		{[]string{"check", sky}, ""},
	} {
		_, errs, code := call(t, dir, c.line...)
		said := strings.Join(strings.Fields(errs), " ")
		if c.want != "" && (code != 1 || !strings.Contains(said, c.want)) {
			t.Errorf("%v ends with %d: %s", c.line, code, errs)
		}
		if c.want == "" && (code == 1 || !strings.Contains(said, "and a run is refused")) {
			t.Errorf("%v ends with %d and does not say that a run is refused: %s", c.line, code, errs)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the data folder has %v: a server was started", left)
	}
}

// An engine that cannot be opened is not added, because no server would start with it.
func TestEngineAdd_RefusesInvalidEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ line, want string }{
		{"--ssh m1 --rate 1 --agents foo", `agents is "foo": write socket, listen`},
		{"--ssh m1 --rate 1 --team ../x", `team is "../x": write 1 to`},
		{"--ssh m1 --rate -1", "is negative"},
		{"--ssh m1", "--rate is missing"},
		{"--kind nomad --rate 1 --ssh m1", `kind "nomad" is not known here: take one of aws, kubernetes, local, slurm, ssh`},
		{"--kind ssh --with {hosts:[m1],rate:1,currency:dollars}", `currency is "dollars": write its code`},
		{"--kind slurm --with {partitions:[{name:gpu}],currency:eur}", `currency is "eur": write its code`},
	} {
		line := strings.Fields("engine add lab " + c.line)
		for n := range line {
			line[n] = strings.NewReplacer(":", ": ", ",", ", ").Replace(line[n])
		}
		_, errs, code := call(t, dir, line...)
		if said := strings.Join(strings.Fields(errs), " "); code != 1 || !strings.Contains(said, c.want) {
			t.Errorf("%v ends with %d: %s", line, code, errs)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "engines.yaml")); err == nil && strings.Contains(string(text), "lab") {
			t.Errorf("%v: it is made known: %s", line, text)
		}
	}
}
