package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const (
	goodSpace = `{"max_epoch": 2, "budget_seconds": 10, "params": [{"name": "lr", "type": "float", "low": 0.1, "high": 1, "log": true},
		{"name": "opt", "type": "cat", "choices": ["sgd", "adam"]}]}`
	goodConfigs = "config_id,lr,opt\n0,0.1,sgd\n1,1,adam\n"
	goodCurves  = "config_id,epoch,metric,seconds\n0,1,5,1\n0,2,4,1\n1,1,3,2\n1,2,nan,2\n"
)

func TestRead_NamesTheFileTheLineAndTheFix(t *testing.T) {
	read := func(space, configs, curves string) (*Table, error) {
		return Read("x", strings.NewReader(space), strings.NewReader(configs), strings.NewReader(curves))
	}
	table, err := read(goodSpace, goodConfigs, goodCurves)
	if err != nil || table.Best != 3 || table.Quarter != 3.25 || !math.IsNaN(table.Curves[1][1].Value) {
		t.Fatalf("%+v, %v", table, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"max_epoch": 2`, `"max_epoch": -2`, "x/space.json: max_epoch is -2: give 1 to"},
		{"1,1,adam", "1,1,adan", "x/configs.csv:3: opt is wrong: \"adan\" is not one of the choices sgd, adam"},
		{"1,1,adam", "1,x,adam", "x/configs.csv:3: lr is wrong: \"x\" is not a number"},
		{"1,1,adam", "1,-1,adam", "x/configs.csv:3: lr is wrong: -1 is not above 0"},
		{"1,1,adam", "1,nan,adam", "x/configs.csv:3: lr is wrong: \"nan\" is not a number"},
		{"1,1,adam", "3,1,adam", "x/configs.csv:3: config_id is \"3\": give a whole number from 1 to 1"},
		{"1,1,adam\n", "1,1\n", "x/configs.csv: record on line 3: wrong number of fields"},
		{"config_id,lr", "config_id,rate", "x/configs.csv:1: no column lr"},
		{goodConfigs, "", "x/configs.csv is empty: its first line names the columns"},
		{"0,0.1,sgd\n1,1,adam\n", "", "x/configs.csv has no configuration"},
		{"1,1,3,2", "1,1,3", "x/curves.csv: record on line 4"},
		{"1,1,3,2", "1,1,low,2", "x/curves.csv:4: metric is \"low\": give a number, or nan"},
		{"1,1,3,2", "1,1,1e301,2", "x/curves.csv:4: metric is \"1e301\""},
		{"1,1,3,2", "1,1,3,-2", "x/curves.csv:4: seconds is \"-2\": give 0 to 1e+09"},
		{"1,1,3,2", "1,1,3,nan", "x/curves.csv:4: seconds is \"nan\""},
		{"1,1,3,2", "1,3,3,2", "x/curves.csv:4: epoch is \"3\": give a whole number from 1 to 2"},
		{"1,1,3,2", "2,1,3,2", "x/curves.csv:4: config_id is \"2\": give a whole number from 0 to 1"},
		{"1,1,3,2", "0,1,3,2", "x/curves.csv:4: epoch 1 of configuration 0 comes twice"},
		{"1,2,nan,2\n", "", "x/curves.csv: configuration 1 has no epoch 2"},
		{"0,1,5,1\n0,2,4,1\n1,1,3,2\n1,2,nan,2", "0,1,nan,1\n0,2,4,1\n1,1,nan,2\n1,2,nan,2", "x/curves.csv: three quarters"},
	} {
		list := []string{goodSpace, goodConfigs, goodCurves}
		for i := range list {
			list[i] = strings.Replace(list[i], c.from, c.to, 1)
		}
		if _, err := read(list[0], list[1], list[2]); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

func TestRegret_IsBetweenTheBestQuarterAndTheBest(t *testing.T) {
	table := &Table{Best: 1, Quarter: 3}
	for v, want := range map[float64]float64{math.Inf(1): 1, 4: 1, 3: 1, 2: 0.5, 1: 0, 0: 0} {
		if got := table.Regret(v); got != want {
			t.Errorf("r of %g is %g, want %g", v, got, want)
		}
	}
	if flat := (&Table{Best: 1, Quarter: 1}); fmt.Sprint(flat.Regret(1), flat.Regret(2)) != "0 1" {
		t.Error("where a quarter of the trials are as good as the best, r is 0 or 1")
	}
}
