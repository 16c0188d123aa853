package study

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

func small() *Spec {
	return &Spec{Metric: "loss", Searcher: "random", Params: []Param{{Name: "lr", Min: 1e-3, Max: 1, Log: true},
		{Name: "opt.name", Values: []string{`"a b"`, "3", "true"}}}}
}

// The pool depends only on the space and the seed, and covers each parameter.
func TestPool_IsTheSameForTheSameSeed(t *testing.T) {
	s := small()
	a, b := s.Pool(), s.Pool()
	s.Seed = 1
	c := s.Pool()
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) || len(a) < 500 {
		t.Errorf("%d configurations; the same seed is equal: %v, another: %v", len(a), reflect.DeepEqual(a, b), reflect.DeepEqual(a, c))
	}
	counts := map[float64]int{}
	low := 0
	for _, v := range a {
		if counts[v[1]]++; v[0] < 0.0316228 {
			low++
		}
	}
	if len(counts) != 3 || low < 250 || low > 262 {
		t.Errorf("values %v, and %d of 512 below the middle of the logarithms", counts, low)
	}
	s.Params[0], s.Grid = Param{Name: "n", Min: 1, Max: 4, Int: true}, true
	if all := s.Pool(); len(all) != 12 || all[0][0] != 1 || all[11][0] != 4 {
		t.Errorf("a grid of 4 times 3 is %v", all)
	}
}

// Expected agrees with counting the trials at each rung of halving searches.
func TestExpected_CountsATrialsShareOfRungs(t *testing.T) {
	s := &Spec{Fidelity: Fidelity{Name: Epoch, Min: 1, Max: 15}}
	for searcher, want := range map[string]float64{
		"random": 81, "default": 81, "median-stop": 81,
		"asha-stop":       (81*1 + 27*2 + 9*6 + 3*6) / 15.0,
		"asha-promo":      (81*1 + 27*2 + 9*6 + 3*6) / 15.0,
		"hyperband-async": 81 / 13.0 * (9*(1+2/3.0+6/9.0+6/27.0) + 3*(3+6/3.0+6/9.0) + (9 + 6/3.0)) / 15,
	} {
		if s.Searcher = searcher; math.Abs(s.Expected(81)-want) > 1e-9 {
			t.Errorf("%s: %g full trainings, want %g", searcher, s.Expected(81), want)
		}
	}
	if s := (&Spec{Searcher: "random"}); s.Expected(5) != 5 {
		t.Errorf("without a fidelity: %g", s.Expected(5))
	}
}

func TestUnit_FollowsTheFidelity(t *testing.T) {
	s := &Spec{Fidelity: Fidelity{Name: Epoch, Min: 2, Max: 9}}
	for epoch, want := range map[float64]int{0: 0, 1.9: 0, 2: 1, 3.99: 1, 4: 2, 8: 4, 9: 5, 100: 5} {
		if got := s.Length(false).Unit(7, epoch); got != want {
			t.Errorf("epoch %g is unit %d, want %d of %d", epoch, got, want, s.Units())
		}
	}
	s.Fidelity = Fidelity{Name: Step, Min: 100, Max: 1000}
	if s.Length(false).Unit(550, 0) != 5 || s.Units() != 10 {
		t.Errorf("step 550 is unit %d of %d", s.Length(false).Unit(550, 0), s.Units())
	}
}

// Values reach programs as flags, if the command says so, and in the environment. The shell interprets no value.
func TestCommand_HasTheParameters(t *testing.T) {
	s := small()
	texts := s.Texts([][]float64{{0.01, 0}}, 0)
	for command, want := range map[string]string{
		"python3 t.py":                         `python3 t.py --lr=0.01 '--opt.name=a b'`,
		"run ${args} --x":                      `run --lr=0.01 '--opt.name=a b' --x`,
		"run ${args_no_hyphens}":               `run lr=0.01 'opt.name=a b'`,
		"run ${args_json}":                     `run '{"lr":0.01,"opt.name":"a b"}'`,
		"run -l ${lr} -o ${opt.name}":          `run -l 0.01 -o 'a b'`,
		"exec ./t $SCRIMP_PARAM_LR":            `exec ./t $SCRIMP_PARAM_LR`,
		`cat <<< "$SCRIMP_PARAMS" > params.js`: `cat <<< "$SCRIMP_PARAMS" > params.js`,
	} {
		if got, _ := s.Values(texts, false).Command(command, nil); got != want {
			t.Errorf("%s becomes %s, want %s", command, got, want)
		}
	}
	_, args := s.Values(texts, false).Command("", []string{"t", "${args}", "--j=${args_json}"})
	if want := []string{"t", "--lr=0.01", "--opt.name=a b", `--j={"lr":0.01,"opt.name":"a b"}`}; !slices.Equal(args, want) {
		t.Errorf("arguments are %q", args)
	}
	if env := s.Values(texts, false).Env(); env["SCRIMP_PARAM_OPT_NAME"] != "a b" || env["SCRIMP_PARAM_LR"] != "0.01" {
		t.Errorf("the environment is %v", env)
	}
}
