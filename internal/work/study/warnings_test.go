package study

import (
	"strings"
	"testing"
)

// Each program has the warnings that it deserves, in this order. Programs that may well get all have none.
func TestWarnings_NameWhatTheSearchWouldMiss(t *testing.T) {
	epochs := `epoch (?P<epoch>\d+) loss (?P<loss>\S+)`
	for _, c := range []struct {
		p    Program
		says []string
	}{
		{Program{Command: "python3 t.py", Pattern: epochs}, nil},
		{Program{Command: "python3 t.py"}, nil},
		{Program{Command: "python3 t.py", Pattern: `loss (?P<loss>\S+)`, File: "log.jsonl"}, nil},
		{Program{Command: "python3 t.py", Pattern: `(?P<current_epoch>\d+) (?P<loss>\S+)`}, nil},
		{Program{Command: "python3 t.py", Pattern: `epoch (?P<epoch>\d+) train (?P<train_loss>\S+)`}, []string{"(?P<loss>…)"}},
		{Program{Command: "python3 t.py", Pattern: `step (?P<step>\d+) (?P<loss>\S+)`}, []string{"(?P<epoch>…)"}},
		{Program{Command: "python3 t.py", Pattern: `step (?P<step>\d+)`}, []string{"(?P<loss>…)", "(?P<epoch>…)"}},
		{Program{Command: "t ${args_json}"}, nil},
		{Program{Command: "t -l ${lr} -o ${opt.name}"}, nil},
		{Program{Command: "t -l ${lr} -o $SCRIMP_PARAM_OPT_NAME"}, nil},
		{Program{Command: `t "$SCRIMP_PARAMS"`}, nil},
		{Program{Command: "t ${!SCRIMP_PARAM_@}"}, nil},
		{Program{Command: "t -l $SCRIMP_PARAM_RATE"}, []string{"SCRIMP_PARAM_RATE, and no", "does not name lr, opt.name"}},
		{Program{Command: "t -l ${lr}"}, []string{"does not name opt.name: the program gets it only in its environment (SCRIMP_PARAM_OPT_NAME)"}},
		{Program{Command: "t -l $SCRIMP_PARAM_LR"}, []string{"not name opt.name"}},
		{Program{Args: []string{"t", "-l=${lr}"}}, []string{"add ${opt.name} or ${args}"}},
		{Program{Args: []string{"t"}}, nil},
		{Program{Args: []string{"t", "|", "tee"}}, nil},
		{Program{Command: "t ${args} $SCRIMP_PARAM_RATE $SCRIMP_PARAM_RATE"}, []string{"SCRIMP_PARAM_RATE, and no parameter"}},
		{Program{Command: "t > log 2>&1"}, nil},
		{Program{Command: "cd src && t || exit 1"}, []string{`"exit"`}},
		{Program{Command: "cd src && t"}, nil},
		{Program{Command: "mkdir -p out\nt \\\n  -v"}, nil},
		{Program{Command: "t\necho done"}, []string{`"echo"`}},
		{Program{Command: "t && cp model /out"}, []string{`"cp"`}},
		{Program{Command: "(cd src; t)"}, []string{`")"`}},
		{Program{Command: "{ t; }"}, []string{`"}"`}},
		{Program{Command: "t # quick"}, []string{`"# quick"`}},
		{Program{Command: "t a#b '# c'"}, nil},
		{Program{Command: "bash -c 't --fast'"}, []string{`"bash -c"`}},
		{Program{Command: "X=1 exec sh -ec t"}, nil}, // not looked at: several options in one
		{Program{Command: `bash -c 't "$@"' t`}, nil},
		{Program{Command: "bash train.sh"}, nil},
		{Program{Command: "time python3 t.py 2>err.log"}, nil},
		{Program{Command: "echo $((1 + 2)) ${HOME} `date; true`; t"}, nil},
		{Program{Command: "cat <<A <<B >conf\nx | y\nA\nz &\nB\nt"}, nil},
		{Program{Command: "t > log 2>&1", Pattern: epochs}, []string{`the output of "t" goes to a file`}},
		{Program{Command: "python3 t.py &>>log", Pattern: epochs}, []string{`the output of "python3" goes to a file`}},
		{Program{Command: "t >&2 2>err; echo done >flag", Pattern: epochs}, []string{`"echo"`}},
		{Program{Command: "t >log & tail -f log; t", Pattern: epochs}, nil},
		{Program{Command: "t >/dev/stdout", Pattern: epochs}, nil},
		{Program{Command: "t > log", File: "log", Pattern: epochs}, nil},
		{Program{Command: `FLAGS="a|b" t 'c | d'`}, nil},
		{Program{Command: "cat data | wc -l; t"}, nil},
		{Program{Command: "t $(cat flags)"}, nil},
		{Program{Command: "t 2>&1 | tee log"}, []string{`"| tee"`}},
		{Program{Command: "t |& tee log"}, []string{`"| tee"`}},
		{Program{Command: "cat data | python3 t.py"}, nil},
		{Program{Command: "t &"}, []string{`"&"`}},
		{Program{Command: "for s in 1 2; do t $s; done"}, []string{`"done"`}},
		{Program{Command: "t\n# the end\n"}, []string{`"# the end"`}},
		{Program{Command: "python3 - <<'END'\nprint(1)\nEND\n"}, []string{`"END"`}},
		{Program{Command: "t ${args} | tee log"}, nil},
	} {
		s := small()
		s.Metric, s.Fidelity = "loss", Fidelity{Name: Epoch, Min: 1, Max: 9}
		got := s.Warnings(c.p)
		ok := len(got) == len(c.says)
		for i := 0; ok && i < len(got); i++ {
			ok = strings.Contains(got[i], c.says[i])
		}
		if !ok {
			t.Errorf("%+v: %q, want %q", c.p, got, c.says)
		}
	}
}

// Any text is scanned to its end.
func FuzzScan(f *testing.F) {
	for _, text := range []string{"a|b", "'", "$((", "<<A", "a \\", "\"$(\"", ")", "#", ">"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for _, c := range scan(text).commands {
			for _, w := range c.words {
				n += len(w)
			}
		}
		if n > len(text) {
			t.Errorf("%q has words of %d bytes", text, n)
		}
	})
}
