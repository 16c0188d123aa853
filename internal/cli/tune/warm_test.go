package tune

import (
	"reflect"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/work/study"
)

func TestMerged_CountsEachValueOfAConfigurationOnce(t *testing.T) {
	one := study.Past{Params: []string{"1"}, Points: []study.Point{{Unit: 1, Value: 2}}}
	again := study.Past{Params: []string{"1"}, Points: []study.Point{{Unit: 1, Value: 2}, {Unit: 2, Value: 1}}}
	other := study.Past{Params: []string{"2"}, Points: []study.Point{{Unit: 1, Value: 2}}}
	want := []study.Past{again, other}
	if got := merged([]study.Past{one}, []study.Past{again, other}); !reflect.DeepEqual(got, want) {
		t.Errorf("merged into %v, want %v", got, want)
	}
}

func TestInSpace_RefusesTrialsOfAnotherSpace(t *testing.T) {
	s := &study.Spec{Params: []study.Param{{Name: "lr", Min: 0.001, Max: 1}, {Name: "n", Min: 1, Max: 4, Int: true}}}
	curve := []api.TrialPoint{{Unit: 1, Value: 2}, {Unit: 3, Value: 1.5}}
	for want, params := range map[string]map[string]string{
		"":                                       {"lr": "0.5", "n": "3"},
		"it has no parameter n":                  {"lr": "0.5"},
		"lr: 2 is not between min 0.001":         {"lr": "2", "n": "3"},
		"n: 2.5 is not a whole number":           {"lr": "0.5", "n": "2.5"},
		`n: "many" is not a number`:              {"lr": "0.5", "n": "many"},
		"it has 3 parameters, and the space has": {"lr": "0.5", "n": "3", "opt": "adam"},
	} {
		p, err := inSpace(api.Trial{Params: params, Curve: curve}, s)
		switch {
		case want == "" && (err != nil || !reflect.DeepEqual(p.Params, []string{"0.5", "3"}) || len(p.Points) != 2 || p.Points[1].Unit != 3):
			t.Errorf("%v: %+v, %v", params, p, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%v: %v, want %s", params, err, want)
		}
	}
}
