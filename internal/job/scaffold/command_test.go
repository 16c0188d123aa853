package scaffold

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/job/spec"
)

// A command gets the guesses of a first job file for the same script; the command's own values take precedence.
func TestCommand_GetsGuessesOfFirstJobFile(t *testing.T) {
	script := `p.add_argument("--steps", type=int, default=400)
p.add_argument("--output_dir", default="./ckpts")
for step in range(args.steps):
    print(f"step {step}/{args.steps} loss {loss:.3f}")
print(f"saved step {step}")
`
	fsys := dir(map[string]string{"train.py": script, "sub/other.py": "print('hello')"})
	for command, want := range map[string]string{
		"python train.py":                                     "ckpts 400",
		"python3 ./train.py --steps 30":                       "ckpts 30",
		"python train.py --output_dir=mine --steps=7":         "mine 7",
		"torchrun --nproc_per_node 2 train.py --steps 30":     "ckpts 30",
		"python sub/other.py":                                 "checkpoints 0",
		"python missing.py":                                   "checkpoints 0",
		"python /elsewhere/train.py --checkpoint_dir /tmp/up": "checkpoints 0",
		"./train.sh": "checkpoints 0",
	} {
		plain := spec.FromCommand(strings.Fields(command))
		j, guesses := Command(fsys, plain)
		if got := fmt.Sprint(j.Checkpoint.Dir, " ", j.Work.Steps); got != want {
			t.Errorf("%s: %s, want %s; %+v", command, got, want, guesses)
		}
		if known := j.Progress.Pattern != ""; known != (j.Work.Steps > 0) || known && !strings.Contains(j.Progress.Pattern, "(?P<step>") {
			t.Errorf("%s: progress %+v", command, j.Progress)
		}
		if strings.Join(j.Args, " ") != command || (len(guesses) > 0) != (want != "checkpoints 0") {
			t.Errorf("%s became %v, by %+v", command, j.Args, guesses)
		}
		for _, g := range guesses {
			if g.Why == "" || g.Value == "" {
				t.Errorf("%s: %+v", command, g)
			}
		}
	}
}

func TestCommand_GuessesNoStepsOfALoopThatTrainsTheTrialsOfASearch(t *testing.T) {
	script := `for trial in scrimp.search("own", space, epochs=9, trials=12):
    for epoch in trial.epochs():
        print(f"epoch {epoch}/9 loss {loss:.3f}")
`
	for text, want := range map[string]int64{script: 0, strings.ReplaceAll(script, "scrimp.search", "others"): 9} {
		j, _ := Command(dir(map[string]string{"own.py": text}), spec.FromCommand([]string{"python3", "own.py"}))
		if j.Work.Steps != want || j.Progress.Pattern == "" {
			t.Errorf("%s: %d steps, want %d; progress %+v", text, j.Work.Steps, want, j.Progress)
		}
	}
}
