package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"
)

// retrain is a typical pipeline, with its stages in no order.
func retrain() []Stage {
	return []Stage{
		{Name: "deploy", Deps: []string{"model"}, Outs: []string{"live"}, Gate: &Gate{Metric: "evaluate.test.accuracy", Min: "0.90"}},
		{Name: "evaluate", Deps: []string{"model/weights", "data/clean/test.csv"}, Outs: []string{"report"},
			Metrics: []string{"report/metrics.json"}},
		{Name: "train", Deps: []string{"./data/clean/", "train.py"}, Outs: []string{"model"}, Params: map[string]string{"lr": "0.1"}},
		{Name: "prepare", Deps: []string{"raw.csv"}, Outs: []string{"data/clean"}},
		{Name: "notify", After: []string{"deploy"}},
	}
}

func TestNew_OrdersStagesAfterThoseThatTheyNeed(t *testing.T) {
	in := retrain()
	s, err := New(in)
	must.Do(t, err)
	var order []string
	for _, x := range s.Stages {
		order = append(order, x.Name)
	}
	if got := strings.Join(order, " "); got != "prepare train evaluate deploy notify" {
		t.Errorf("the order is %s", got)
	}
	if in[0].Needs != nil || in[2].Deps[0] != "./data/clean/" {
		t.Error("New has changed what it was given")
	}
	if reads := s.Reads(s.Find("evaluate")); len(reads) != 2 {
		t.Errorf("evaluate reads of %v", reads)
	}
	if reads := s.Reads(s.Find("notify")); len(reads) != 1 {
		t.Errorf("notify names no deps, comes after deploy, and reads of %v", reads)
	}
}

// For any random pipeline, New either accepts it with each stage after everything that it needs, or reports a problem.
func TestNew_OrdersRandomPipelines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t)
		s, err := New(in)
		if err != nil {
			if p, ok := errors.AsType[*Problem](err); !ok || p.Err == nil || p.Error() == "" {
				t.Fatalf("%v is no Problem", err)
			}
			return
		}
		if len(s.Stages) != len(in) {
			t.Fatalf("%d of %d stages are left", len(s.Stages), len(in))
		}
		holdsTogether(t, s)
		again, err := New(s.Stages)
		if a, b := asJSON(s), asJSON(again); err != nil || a != b {
			t.Fatalf("what is in order is ordered anew: %v\n%s\n%s", err, a, b)
		}
	})
}

// holdsTogether compares a pipeline with a simple reading of its stages.
func holdsTogether(t interface{ Fatalf(string, ...any) }, s *Spec) {
	for i, x := range s.Stages {
		var want []int
		for n, y := range s.Stages {
			reads := slices.ContainsFunc(x.Deps, func(d string) bool {
				return slices.ContainsFunc(y.Outs, func(o string) bool {
					return d == o || strings.HasPrefix(d, o+"/") || strings.HasPrefix(o, d+"/")
				})
			})
			judged := n != i && x.Gate != nil && len(y.Metrics) > 0 && strings.HasPrefix(x.Gate.Metric, y.Name+".") &&
				!slices.ContainsFunc(s.Stages, func(z Stage) bool { // the longest name counts
					return len(z.Name) > len(y.Name) && len(z.Metrics) > 0 && strings.HasPrefix(x.Gate.Metric, z.Name+".")
				})
			if reads || judged || slices.Contains(x.After, y.Name) {
				want = append(want, n)
			}
			for _, o := range x.Outs {
				for _, other := range y.Outs {
					if n != i && (o == other || strings.HasPrefix(o, other+"/")) {
						t.Fatalf("%s and %s make %s", x.Name, y.Name, o)
					}
				}
			}
		}
		if !slices.Equal(want, x.Needs) || len(want) > 0 && want[len(want)-1] >= i {
			t.Fatalf("stage %d, %s, needs %v, want %v, all before it", i, x.Name, x.Needs, want)
		}
	}
}

func drawn(t *rapid.T) (list []Stage) {
	path := rapid.StringMatching(`[ab](/[ab]){0,3}`)
	paths := rapid.SliceOfN(path, 0, 2)
	for i := range rapid.IntRange(1, 7).Draw(t, "stages") {
		s := Stage{Name: fmt.Sprintf("s%d", i), Deps: paths.Draw(t, "deps"), Outs: paths.Draw(t, "outs")}
		if n := rapid.IntRange(-4, 6).Draw(t, "after"); n >= 0 {
			s.After = []string{fmt.Sprintf("s%d", n)}
		}
		list = append(list, s)
	}
	return list
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Each error is reported with its stage, its field and its cause.
func TestNew_NamesWhatIsWrong(t *testing.T) {
	chain := make([]Stage, 30)
	for i := range chain {
		chain[i] = Stage{Name: fmt.Sprint("c", i), After: []string{fmt.Sprint("c", (i+1)%30)}}
	}
	many := make([]Stage, 3000)
	for i := range many {
		if many[i] = (Stage{Name: fmt.Sprint("m", i), Outs: []string{fmt.Sprint("parts/", i)}}); i >= 1500 {
			many[i] = Stage{Name: fmt.Sprint("m", i), Deps: []string{"parts"}}
		}
	}
	metric := Stage{Name: "e", Outs: []string{"m.json"}, Metrics: []string{"m.json"}}
	for want, stages := range map[string][]Stage{
		"stages: there are none":                                            nil,
		"stages: there are 10001":                                           make([]Stage, MaxStages+1),
		"a needs b needs c needs a":                                         {{Name: "a", After: []string{"b"}}, {Name: "b", Deps: []string{"x"}}, {Name: "c", Outs: []string{"x/y"}, After: []string{"a"}}},
		"c8 needs 21 others, of which":                                      chain,
		"stages.m2166.deps: with it":                                        many,
		"stages.a.after: there is no stage z":                               {{Name: "a", After: []string{"z"}}},
		"stages.a.after: it comes after itself":                             {{Name: "a", After: []string{"a"}}},
		"stages.b.outs: x is made by a too":                                 {{Name: "a", Outs: []string{"x"}}, {Name: "b", Outs: []string{"./x"}}},
		"stages.b.outs: x/y/z lies in x, which a makes":                     {{Name: "a", Outs: []string{"x"}}, {Name: "b", Outs: []string{"x/y/z"}}},
		"stages.a.outs: x and x/y overlap":                                  {{Name: "a", Outs: []string{"x/y", "x"}}},
		"stages.a.outs: the stage reads x and makes it":                     {{Name: "a", Deps: []string{"x"}, Outs: []string{"x/y"}}},
		"stages.a.outs: the stage reads x/y and makes it":                   {{Name: "a", Deps: []string{"x/y"}, Outs: []string{"x"}}},
		"stages.a.deps: x is there twice":                                   {{Name: "a", Deps: []string{"x", "./x/"}}},
		"stages.a.deps: s3://b/x is an address":                             {{Name: "a", Deps: []string{"s3://b/x"}}},
		"stages.a.deps: ../x leads out":                                     {{Name: "a", Deps: []string{"../x"}}},
		"stages.a.deps: /x leads out":                                       {{Name: "a", Deps: []string{"/x"}}},
		"stages.a.outs: it is the work folder itself":                       {{Name: "a", Outs: []string{"x/.."}}},
		`stages.a.deps: "\xff" is no UTF-8`:                                 {{Name: "a", Deps: []string{"\xff"}}},
		"folders within each other":                                         {{Name: "a", Deps: []string{strings.Repeat("a/", 101)}}},
		"stages.a.metrics: n.json is none of its outs":                      {{Name: "a", Outs: []string{"m.json"}, Metrics: []string{"n.json"}}},
		`stages.a.params: "lr": give a value`:                               {{Name: "a", Params: map[string]string{"lr": "fast"}}},
		`stages.a.params: "x": give a value`:                                {{Name: "a", Params: map[string]string{"x": "\"\xff\""}}},
		"stages.a b: the name has to be":                                    {{Name: "a b"}},
		"stages.a: two stages have that name":                               {{Name: "a"}, {Name: "a"}},
		"stages.a-b: the name differs from A@b by signs only":               {{Name: "A@b"}, {Name: "a-b"}},
		"stages.a.gate: no stage that comes before a reports":               {{Name: "a", Gate: &Gate{Metric: "acc", Min: "1"}}, metric},
		"stages.a.gate: name the metric":                                    {metric, {Name: "a", After: []string{"e"}, Gate: &Gate{Min: "1"}}},
		"stages.a.gate: give min, max or min_gain":                          {metric, {Name: "a", After: []string{"e"}, Gate: &Gate{Metric: "acc"}}},
		`stages.a.gate: "NaN" is no decimal`:                                {metric, {Name: "a", After: []string{"e"}, Gate: &Gate{Metric: "acc", Min: "NaN"}}},
		"stages.a.gate: min 2 is above max 1.9":                             {metric, {Name: "a", After: []string{"e"}, Gate: &Gate{Metric: "acc", Min: "2", Max: "1.9"}}},
		"stages.a.gate: e. names no metric":                                 {metric, {Name: "a", After: []string{"e"}, Gate: &Gate{Metric: "e.", Max: "1"}}},
		"stages.a.gate: acc may be a metric of e and of f: write its stage": {metric, {Name: "f", Outs: []string{"n"}, Metrics: []string{"n"}}, {Name: "a", After: []string{"e", "f"}, Gate: &Gate{Metric: "acc", Max: "1"}}},
	} {
		_, err := New(stages)
		if _, ok := errors.AsType[*Problem](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A stage's key is the same if and only if everything that determines its outputs is the same.
func TestKey_NamesWhatOutputsAreMadeOf(t *testing.T) {
	base := Stage{Name: "train", Deps: []string{"a", "b"}, Outs: []string{"m", "n"}, Params: map[string]string{"lr": "0.1", "x": "1"},
		Program: "p"}
	inputs := []Content{{"a", "1"}, {"b", "2"}}
	key := base.Key(inputs)
	same := map[string]Stage{
		"name": {Name: "other", Outs: base.Outs, Params: base.Params, Program: "p"}, "order of outs": {Outs: []string{"n", "m"},
			Params: base.Params, Program: "p"}, "after, gate, always": {Outs: base.Outs, Params: base.Params, Program: "p",
			After: []string{"z"}, Gate: &Gate{Metric: "m"}, Always: true, Metrics: []string{"m"}},
	}
	for what, s := range same {
		if s.Key([]Content{inputs[1], inputs[0]}) != key {
			t.Errorf("another %s changes the key", what)
		}
	}
	seen := map[string]string{key: "nothing"}
	for what, s := range map[string]Stage{
		"program": {Outs: base.Outs, Params: base.Params, Program: "q"}, "value": {Outs: base.Outs, Program: "p",
			Params: map[string]string{"lr": "0.2", "x": "1"}}, "one param": {Outs: base.Outs, Program: "p",
			Params: map[string]string{"lr": "0.1"}}, "no param": {Outs: base.Outs, Program: "p"},
		"out": {Outs: []string{"m", "o"}, Params: base.Params, Program: "p"}, "no outs": {Params: base.Params, Program: "p"},
	} {
		k := s.Key(inputs)
		if other, twice := seen[k]; twice {
			t.Errorf("%s changes the key as %s does", what, other)
		}
		seen[k] = what
	}
	for _, in := range [][]Content{nil, {{"a", "1"}}, {{"a", "1"}, {"b", ""}}, {{"a", "2"}, {"b", "1"}}, {{"a", "1"}, {"c", "2"}},
		{{"a", "1b2"}}, {{".", "1"}}} {
		k := base.Key(in)
		if other, twice := seen[k]; twice {
			t.Errorf("inputs %v change the key as %v do", in, other)
		}
		seen[k] = fmt.Sprint(in)
	}
}

// A pipeline that was written and read again has the same keys: an empty list and a missing one are equal.
func TestKey_IsTheSameAfterTheLog(t *testing.T) {
	s, err := New(append(retrain(), Stage{Name: "empty", Params: map[string]string{}}))
	must.Do(t, err)
	var read Spec
	must.Do(t, json.Unmarshal([]byte(asJSON(s)), &read))
	for i := range s.Stages {
		if s.Stages[i].Key(nil) != read.Stages[i].Key([]Content{}) {
			t.Errorf("%s has another key after it was read again", s.Stages[i].Name)
		}
	}
}

// At its limit a gate passes. The figures are compared as decimals, as written.
func TestJudge_ComparesWrittenDecimals(t *testing.T) {
	for _, c := range []struct {
		min, max, value string
		pass            bool
	}{
		{"0.9", "", "0.9", true}, {"0.90", "", "0.9", true}, {"0.9", "", "9e-1", true}, {"0.9", "", "0.8999999999999999999999", false},
		{"0.9", "", "0.9000000000000000000001", true}, {"", "0.1", "0.1", true}, {"", "0.1", "0.10000000000000000001", false},
		{"-1", "1", "-1", true}, {"-1", "1", "1", true}, {"-1", "1", "-1.01", false}, {"-1", "1", "1e2", false}, {"0", "", "-0", true},
	} {
		s, err := New([]Stage{
			{Name: "a", Outs: []string{"a.json"}, Metrics: []string{"a.json"}},
			{Name: "a.b", Outs: []string{"b.json"}, Metrics: []string{"b.json"}},
			{Name: "d", After: []string{"a", "a.b"}, Gate: &Gate{Metric: "a.b.c", Min: c.min, Max: c.max}},
		})
		must.Do(t, err)
		v, err := s.Judge(2, func(n int) map[string]string {
			if s.Stages[n].Name != "a.b" {
				return nil // the longest name counts
			}
			return map[string]string{"c": c.value}
		}, nil)
		if err != nil || len(v) != 1 || v[0].Pass != c.pass || !strings.HasPrefix(v[0].Why, "c of a.b is "+c.value) {
			t.Errorf("%+v: %+v, %v", c, v, err)
		}
	}
}

func TestJudge_WithoutMetricSaysWhatIsMissing(t *testing.T) {
	s, err := New(retrain())
	must.Do(t, err)
	at := s.Find("deploy")
	for _, m := range []map[string]string{nil, {"accuracy": "1"}, {"test.accuracy": "high"}} {
		if _, err := s.Judge(at, func(int) map[string]string { return m }, nil); !errors.Is(err, ErrMetric) {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// If Decimal accepts a text, its value is exactly the number in base ten, and memory is limited.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0.5", "-3", "1e-4", "1e999999999", "0x10", "010", "1/3", "1_0", "Inf", "+.5", "5.", "1e1e1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Decimal(text)
		if err != nil {
			return
		}
		if v.Num().BitLen() > 5000 || v.Denom().BitLen() > 5000 {
			t.Errorf("%q takes %d bits", text, v.Num().BitLen())
		}
		if strings.Trim(text, "+-.0123456789eE") != "" {
			t.Errorf("%q is taken", text)
		}
		if whole, found := new(big.Int).SetString(text, 10); found && new(big.Rat).SetInt(whole).Cmp(v) != 0 {
			t.Errorf("%q is %s", text, v)
		}
	})
}

func FuzzNew(f *testing.F) {
	f.Add(asJSON(retrain()))
	f.Add(`[{"name":"a","outs":["x"]},{"name":"b","deps":["x/y"],"gate":{"metric":"a.m","min":"1"}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var in []Stage
		if json.Unmarshal([]byte(text), &in) != nil {
			return
		}
		s, err := New(in)
		if err != nil {
			return
		}
		holdsTogether(t, s)
		for i := range s.Stages {
			s.Reads(i)
			_, _ = s.Judge(i, func(int) map[string]string { return nil }, nil)
		}
	})
}

// large is a pipeline of many stages in layers. Each stage reads three of the previous layer, and has a gate.
func large() []Stage {
	list := make([]Stage, MaxStages)
	for i := range list {
		s := Stage{Name: fmt.Sprint("stage@", i), Outs: []string{fmt.Sprintf("out/%d/data", i), fmt.Sprintf("out/%d/m.json", i)},
			Metrics: []string{fmt.Sprintf("out/%d/m.json", i)}, Params: map[string]string{"n": fmt.Sprint(i)}}
		if i >= 3 {
			for k := 1; k <= 3; k++ {
				s.Deps = append(s.Deps, fmt.Sprintf("out/%d/data/part", i-k))
			}
			s.Gate = &Gate{Metric: fmt.Sprintf("stage@%d.accuracy", i-3), Min: "0.5"}
		}
		list[len(list)-1-i] = s
	}
	return list
}

func BenchmarkNew(b *testing.B) {
	in := large()
	for i := range in[:10] { // a gate that names no stage needs a longer search
		in[i].Gate = &Gate{Metric: "accuracy", Max: "1"}
		in[i].After, in[i].Deps = []string{"stage@0"}, nil
	}
	for b.Loop() {
		s, err := New(in)
		if err != nil || len(s.Stages[5000].Needs) != 3 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(MaxStages*b.N)/b.Elapsed().Seconds(), "stages/s")
}

func BenchmarkNew_StageOfManyPaths(b *testing.B) {
	s := Stage{Name: "a"}
	for i := range MaxPaths {
		s.Deps, s.Outs = append(s.Deps, fmt.Sprint("in/", i)), append(s.Outs, fmt.Sprint("out/", i))
	}
	for b.Loop() {
		if _, err := New([]Stage{s}); err != nil {
			b.Fatal(err)
		}
	}
}
