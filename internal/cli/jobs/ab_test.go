package jobs

import (
	"io"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/command"
	"scrimp/internal/job/spec"
)

// The commands that scrimp diagnose names (diagnose.TestTry_NamesACommandWhereAFieldTriesTheChange) are ones of
// scrimp ab, and what they set is a valid field.
func TestAB_TakesWhatDiagnoseNames(t *testing.T) {
	for _, line := range []string{
		"scrimp ab train --set env.OMP_NUM_THREADS=16 --set env.MKL_NUM_THREADS=16",
		"scrimp ab train --set resources.cpus=4", "scrimp ab train --set resources.memory=13GiB",
		"scrimp ab train --set resources.accelerator=L4:2", "scrimp ab train --set idle=10m",
	} {
		words := strings.Fields(line)
		a := &app{&command.App{Out: io.Discard, Err: io.Discard, Now: time.Now}}
		cmd := a.abCmd()
		if err := cmd.ParseFlags(words[2:]); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		set, _ := cmd.Flags().GetStringArray("set")
		f := abFlags{set: set}
		b := baseline{job: "train", text: []byte("command: python train.py\nresources: {accelerator: A100:2, cpus: 8}\n")}
		if _, _, err := b.arms(f, time.Now()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestStageOf_LeavesOutWhatTheComparisonHas(t *testing.T) {
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("name: a\ncommand: b\nteam: c\ntags: {d: e}\nsecrets: [F]\n"+
		"inherit: [G]\noutputs: [h]\nworkdir: i\ndeadline: in 6h\nbudget: $3\nenv: {J: k}\n"), "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := stageOf(j).Encode()
	if err != nil || string(text) != `{"command":"b","env":{"J":"k"}}` {
		t.Errorf("a run has %s, %v", text, err)
	}
}
