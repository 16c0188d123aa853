package tune

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/command"
)

// folder writes a small table.
func folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	configs, curves := "config_id,lr\n", "config_id,epoch,metric,seconds\n"
	for i := range 12 {
		configs += fmt.Sprintf("%d,%g\n", i, float64(i)/12+0.01)
		for e := 1; e <= 4; e++ {
			curves += fmt.Sprintf("%d,%d,%g,1\n", i, e, float64(i%5)+1/float64(e))
		}
	}
	for file, text := range map[string]string{"configs.csv": configs, "curves.csv": curves,
		"space.json": `{"max_epoch": 4, "budget_seconds": 20, "switch_seconds": 0.1, "price_usd_per_worker_hour": 3600,
			"params": [{"name": "lr", "type": "float", "low": 0, "high": 1}]}`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs scrimp tune with the given arguments.
func run(ctx context.Context, json bool, args ...string) (string, error) {
	var out bytes.Buffer
	app := &command.App{Out: &out, Err: &bytes.Buffer{}, Now: func() time.Time { return time.Time{} }, JSON: json}
	cmd := Commands(app)[0]
	cmd.GroupID = ""
	cmd.SetArgs(append([]string{"simulate"}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestSimulate_PrintsOneObjectForPrograms(t *testing.T) {
	a, b := folder(t, "one"), folder(t, "two")
	for _, args := range [][]string{
		{"--table", a, "--table", b, "--searcher", "random", "--searcher", "default", "--seeds", "2"},
		{"--table", a + "," + b, "--searcher", "random,default", "--seeds", "2"},
		{"--table", a, b, "--seeds", "2", "--searcher", "random", "default"},
	} {
		out, err := run(t.Context(), true, append(args, "--point-value", "10")...)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Results []map[string]any `json:"results"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
			t.Fatalf("%v in %s", err, out)
		}
		if len(got.Results) != 8 {
			t.Fatalf("%v: %d results, want 8", args, len(got.Results))
		}
		for i, r := range got.Results {
			for _, key := range []string{"r10", "r25", "r50", "r100", "auc", "to1", "overshoot", "stop_spent", "stop_regret"} {
				if _, ok := r[key].(float64); !ok {
					t.Errorf("result %d has %s = %v", i, key, r[key])
				}
			}
			want := fmt.Sprint([]string{"one", "two"}[i/4], []string{"random", "default"}[i/2%2], i%2)
			if said := fmt.Sprint(r["table"], r["searcher"], r["seed"]); said != want {
				t.Errorf("result %d is of %s, want %s", i, said, want)
			}
		}
	}
	if out, _ := run(t.Context(), true, "--table", a, "--searcher", "random", "--seeds", "1"); strings.Contains(out, "stop_") {
		t.Errorf("figures of a stop without --point-value: %s", out)
	}
}

func TestSimulate_PrintsATableForPeople(t *testing.T) {
	out, err := run(t.Context(), false, folder(t, "one"), folder(t, "two"), "--seeds", "3", "--searcher", "random,asha-stop",
		"--point-value", "10")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"OVERSHOOT", "STOP REGRET", "one    random", "two    asha-stop", "all    random", "Means over 3 seeds"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSimulate_RefusesInvalidArguments(t *testing.T) {
	dir := folder(t, "one")
	for want, args := range map[string][]string{
		"give --table FOLDER":                nil,
		"--seeds 0: give 1 to 10000":         {"--table", dir, "--seeds", "0"},
		"--point-value -1: give 0 to":        {"--table", dir, "--point-value", "-1"},
		"--point-value NaN: give 0 to":       {"--table", dir, "--point-value", "nan"},
		"--min-gain NaN: give 0 to":          {"--table", dir, "--min-gain", "nan"},
		"--min-gain and --point-value say":   {"--table", dir, "--min-gain", "1", "--point-value", "1"},
		"--patience -1: give 1 to":           {"--table", dir, "--patience", "-1"},
		"--patience needs --min-gain or":     {"--table", dir, "--patience", "3"},
		"--searcher \"grid\" is not one of ": {"--table", dir, "--searcher", "grid"},
		"read --table: open ":                {"--table", dir + "x"},
	} {
		if _, err := run(t.Context(), false, args...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

func TestSimulate_StopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, false, folder(t, "one"), "--seeds", "10000"); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted simulation ends with %v", err)
	}
}

func TestExport_RefusesWhatItCannotWrite(t *testing.T) {
	there := folder(t, "one")
	for _, c := range []struct {
		f    exportFlags
		want string
	}{
		{exportFlags{"csv", "-"}, ""},
		{exportFlags{"optuna", filepath.Join(there, "new")}, ""},
		{exportFlags{"parquet", "-"}, `--format "parquet": give csv, optuna or mlflow`},
		{exportFlags{"mlflow", "-"}, "name it with -o"},
		{exportFlags{"csv", ""}, "-o is empty"},
		{exportFlags{"mlflow", there}, "it is there already"},
	} {
		if err := c.f.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}
