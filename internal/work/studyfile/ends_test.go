package studyfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
	"scrimp/internal/work/study"
)

func TestParse_ReadsLimitsPlateauAndWarmStart(t *testing.T) {
	for text, want := range map[string]study.Plateau{
		"{patience: 8, min_gain_per_usd: 0.002}": {Patience: 8, MinGain: 0.002},
		"{patience: 8, point_value: $500}":       {Patience: 8, PointValue: 500},
		"{point_value: 500}":                     {PointValue: 500},
	} {
		f, err := Parse("study.yaml", []byte(strings.Replace(sweep, "usd: 100", "usd: 100, gpu_hours: 40.5", 1)+
			"plateau: "+text+"\nwarm_start: [old, more.csv]\n"))
		must.Do(t, err)
		if f.Study.GPUHours != 40.5 || *f.Study.Plateau != want || !reflect.DeepEqual(f.Warm, []string{"old", "more.csv"}) {
			t.Errorf("%s is read as %+v, %g GPU-hours, warm start %v", text, f.Study.Plateau, f.Study.GPUHours, f.Warm)
		}
		if got := f.Study.Plateau.Least(); got != want.MinGain && got != 1/want.PointValue {
			t.Errorf("%s: a gain of %g pays", text, got)
		}
	}
}

// space is a search in two parameters.
var space = study.Spec{Metric: "loss", Searcher: "default", Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9},
	Params: []study.Param{{Name: "lr", Min: 0.001, Max: 1, Log: true}, {Name: "opt", Values: []string{`"adam"`, `"sgd"`}}}}

func TestObservations_ReadsValuesAndExportedTrials(t *testing.T) {
	values := "lr,opt,epoch,loss\n0.1,adam,1,2.5\n0.01,sgd,1,3\n0.1,adam,2,2\n"
	exported := "trial,state,why,unit,values,best,best_at,last,cost,lr,opt\n" +
		"s.0,stopped,pruned,3,3,1.5,2,1.75,0.2,0.1,adam\ns.1,running,,1,1,3,1,3,0.1,0.01,sgd\ns.2,failed,,0,0,,0,,0,0.02,sgd\n"
	for text, want := range map[string][]study.Past{
		values: {{Params: []string{"0.1", "adam"}, Points: []study.Point{{Unit: 1, Value: 2.5}, {Unit: 2, Value: 2}}},
			{Params: []string{"0.01", "sgd"}, Points: []study.Point{{Unit: 1, Value: 3}}}},
		exported: {{Params: []string{"0.1", "adam"}, Points: []study.Point{{Unit: 2, Value: 1.5}, {Unit: 3, Value: 1.75}}},
			{Params: []string{"0.01", "sgd"}, Points: []study.Point{{Unit: 1, Value: 3}}}},
	} {
		got, err := Observations("old.csv", []byte(text), &space)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		s := space
		if s.Past = got; s.Searcher == "default" {
			if field, err := s.Check(); err != nil {
				t.Errorf("%q: %s: %v", text, field, err)
			}
		}
		for i, p := range s.Tuned() {
			if len(p.Points) != len(want[i].Points) || p.Values[1] != float64(i) {
				t.Errorf("%q: configuration %d is %+v for a searcher", text, i, p)
			}
		}
	}
}

// Exported trials of a proxy show what they ran with. A search on the same proxy learns from them, and one without a
// proxy from those trained in full.
func TestObservations_ReadsTheTrialsOfAProxy(t *testing.T) {
	text := "trial,state,why,unit,values,best,best_at,last,cost,proxy,lr,part\n" +
		"s.0,succeeded,,3,3,1.5,2,1.75,0.2,true,0.1,0.25\ns.1,succeeded,,9,9,1,9,1,0.1,false,0.1,1\n"
	s := study.Spec{Metric: "loss", Searcher: "default", Fidelity: space.Fidelity,
		Params: []study.Param{space.Params[0], {Name: "part", Values: []string{"1"}}}}
	full := []study.Past{{Params: []string{"0.1", "1"}, Points: []study.Point{{Unit: 9, Value: 1}}}}
	proxy := []study.Past{{Params: []string{"0.1", "1"}, Points: []study.Point{{Unit: 2, Value: 1.5}, {Unit: 3, Value: 1.75}}}}
	if got, err := Observations("old.csv", []byte(text), &s); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("without a proxy: %v, %v", got, err)
	}
	s.Proxy = &study.Proxy{Set: map[string]string{"part": "0.25"}, Promote: 1}
	if got, err := Observations("old.csv", []byte(text), &s); err != nil || !reflect.DeepEqual(got, proxy) {
		t.Errorf("with the proxy: %v, %v", got, err)
	}
	s.Proxy.Set["part"] = "0.5"
	if got, err := Observations("old.csv", []byte(text), &s); err == nil || !strings.Contains(err.Error(), "old.csv:2: part") {
		t.Errorf("with another proxy: %v, %v", got, err)
	}
}

// A part of a whole may be a percentage, and a wrong one is one problem.
func TestParse_ReadsThePartOfAProxy(t *testing.T) {
	for text, want := range map[string]float64{"0.3": 0.3, "30%": 0.3, "'30 %'": 0.3, "5e-2": 0.05, "": 0, "50": 0, "0%": 0, "half": 0,
		"[0.5]": 0, "96%": 0, ".nan": 0} {
		f, err := Parse("s.yaml", []byte("job: j\nmetric: {name: m, goal: maximize}\nbudget: $5\nmethod: random\nparameters:\n"+
			"  p: {min: 0, max: 1}\nfidelity: {name: epoch, min: 1, max: 9}\nproxy: {max: 3, reserve: "+text+"}"))
		list, _ := errors.AsType[spec.Problems](err)
		if want == 0 && (len(list) != 1 || list[0].Field != "proxy.reserve") {
			t.Errorf("%q: %v, want one problem", text, err)
		}
		if want > 0 && (err != nil || f.Study.Proxy.Reserve != want) {
			t.Errorf("%q: %v, want %g", text, err, want)
		}
	}
}

func TestObservations_NamesLineAndReasonOfWhatIsOutsideTheSpace(t *testing.T) {
	for text, want := range map[string]string{
		"lr,opt,epoch,loss\n0.1,adam,1,2\n5,adam,1,2\n":      "old.csv:3: lr: 5 is not between min 0.001 and max 1",
		"lr,opt,epoch,loss\n0.1,lamb,1,2\n":                  `old.csv:2: opt: "lamb" is none of its 2 values`,
		"lr,opt,epoch,loss\n0.1,adam,1,much\n":               `old.csv:2: "much" is no value of the metric`,
		"lr,opt,epoch,loss\n0.1,adam,-1,2\n":                 `old.csv:2: "-1" is not an amount of training`,
		"lr,epoch,loss\n0.1,1,2\n":                           "old.csv: no column is named opt",
		"lr,opt,epoch\n0.1,adam,1\n":                         "old.csv: no column is named value or loss",
		"lr,opt,loss\n0.1,adam,1\n":                          "old.csv: no column is named epoch",
		"lr,opt,epoch,loss,momentum\n0.1,adam,1,2,0.9\n":     `old.csv: "momentum" is no parameter of the space`,
		"lr,opt,epoch,loss\n0.1,adam,1,2\n0.1,adam,1,3\n":    "old.csv:3: the configuration has the value 2 at epoch 1 already, and 3 here",
		"lr,opt,epoch,loss\n0.1,adam,5000,2\n":               "old.csv:2: the value 2 at epoch 5000 is beyond the fidelity's max",
		"lr,opt,epoch,loss\n":                                "old.csv: it has no value of the metric",
		"":                                                   "old.csv: read the line with the names",
		"lr,opt,epoch,loss\n" + many(study.MaxPast+1) + "\n": "more than 2000 configurations",
	} {
		if _, err := Observations("old.csv", []byte(text), &space); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	s := space
	s.Searcher, s.Past = "asha-stop", []study.Past{{Params: []string{"0.1", "adam"}, Points: []study.Point{{Unit: 1, Value: 1}}}}
	if field, err := s.Check(); field != "past" || !strings.Contains(err.Error(), "take the searcher default") {
		t.Errorf("another searcher: %s, %v", field, err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%g,adam,1,2\n", 0.1+float64(i)/1e6)
	}
	return b.String()
}
