package study

import (
	"strings"
	"testing"

	"scrimp/internal/lib/money"
)

func proxied(p *Proxy) *Spec {
	return &Spec{Metric: "loss", Searcher: "default", Fidelity: Fidelity{Name: Epoch, Min: 1, Max: 9}, Proxy: p,
		Params: []Param{{Name: "lr", Min: 0.1, Max: 1}, {Name: "resolution", Values: []string{"224"}}}}
}

// A trial of the proxy gets the proxy's values, a promoted one those of the space.
func TestProxy_ReplacesValuesOfItsTrialsOnly(t *testing.T) {
	s := proxied(&Proxy{Set: map[string]string{"resolution": "96", "data_fraction": "0.1"}, Max: 3, Promote: 2})
	if field, err := s.Check(); err != nil {
		t.Fatal(field, err)
	}
	texts := s.Texts([][]float64{{0.5, 0}}, 0)
	for promoted, want := range map[bool]string{
		false: "t --lr=0.5 --resolution=96 --data_fraction=0.1",
		true:  "t --lr=0.5 --resolution=224",
	} {
		if got, _ := s.Values(texts, promoted).Command("t", nil); got != want {
			t.Errorf("promoted %t: %s, want %s", promoted, got, want)
		}
	}
	if env := s.Values(texts, false).Env(); env["SCRIMP_PARAMS"] != `{"lr":0.5,"resolution":96,"data_fraction":0.1}` ||
		env["SCRIMP_PARAM_DATA_FRACTION"] != "0.1" {
		t.Errorf("environment %v", env)
	}
	if s.Units() != 3 || s.Length(true).Units() != 9 {
		t.Errorf("%d and %d units, want 3 and 9", s.Units(), s.Length(true).Units())
	}
	s.Proxy.Reserve = 0.3
	budget, _ := money.Parse("10")
	if kept := s.Reserved(budget); kept.String() != "3" {
		t.Errorf("%s of $10 is reserved, want 3", kept)
	}
}

func TestProxy_RefusesWhatCannotWork(t *testing.T) {
	set := map[string]string{"data_fraction": "0.1"}
	for want, p := range map[string]*Proxy{
		"changes nothing":                       {Promote: 1},
		"promote is 0":                          {Set: set},
		"reserve is 0.99":                       {Set: set, Promote: 1, Reserve: 0.99},
		"max is 20":                             {Max: 20, Promote: 1},
		"set.lr is a parameter":                 {Set: map[string]string{"lr": "1"}, Promote: 1},
		"have the same variable":                {Set: map[string]string{"LR": "1"}, Promote: 1},
		"env.SCRIMP_X: scrimp":                  {Env: map[string]string{"SCRIMP_X": "1"}, Promote: 1},
		"set has \"a b\"":                       {Set: map[string]string{"a b": "1"}, Promote: 1},
		"set.x is no value":                     {Set: map[string]string{"x": "{"}, Promote: 1},
		"set.resolution is 224.0, as in a full": {Set: map[string]string{"resolution": "224.0"}, Promote: 1},
		"promote is 7, and at most 6":           {Set: set, Promote: 7},
		"env has \"1X\": a varia":               {Env: map[string]string{"1X": "1"}, Promote: 1},
	} {
		s := proxied(p)
		s.Trials = 6
		if field, err := s.Check(); err == nil || field != "proxy" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", field, err, want)
		}
	}
	s := proxied(&Proxy{Set: set, Promote: 5})
	if s.Params = []Param{{Name: "k", Values: []string{"1", "2", "3", "4"}}}; s.checkProxy() == nil {
		t.Error("more promotions than configurations are accepted")
	}
	s = proxied(&Proxy{Set: set, Max: 3, Promote: 1})
	if err := s.CheckPoint(Point{Unit: 4, Value: 1}); err == nil || !strings.Contains(err.Error(), "the proxy's max of 3") {
		t.Errorf("a value beyond the proxy's max: %v", err)
	}
	s = proxied(&Proxy{Set: set, Promote: 1})
	if s.Final = true; s.checkProxy() == nil {
		t.Error("final beside a proxy is accepted")
	}
	list := proxied(&Proxy{Set: set, Promote: 1}).Warnings(Program{Command: "t --lr ${lr} --d ${data_fraction}", Pattern: "x"})
	if text := strings.Join(list, " "); !strings.Contains(text, "only the proxy sets") || !strings.Contains(text, "resolution") {
		t.Errorf("warnings %q", list)
	}
}
