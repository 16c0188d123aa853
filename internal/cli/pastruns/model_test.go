package pastruns_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/pastruns"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// A model that cannot be computed is refused with the reason, because any machine would match it.
func TestModelled_RefusesUnusableModel(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"config.json": `{"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}`,
		"odd.json":    `{"model_type": "weird"}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for name, c := range map[string]struct {
		model spec.Model
		want  string // empty if accepted
	}{
		"none":                  {spec.Model{}, ""},
		"how it is divided":     {spec.Model{Sharding: "fsdp"}, ""},
		"a file":                {spec.Model{Config: "config.json"}, ""},
		"a published one":       {spec.Model{Config: "llama-3-8b"}, ""},
		"numbers":               {spec.Model{Parameters: 7e9}, ""},
		"a line":                {spec.Model{Shape: "trees features=28"}, ""},
		"a slip in its name":    {spec.Model{Config: "confg.json"}, `model.config: model "confg.json": is neither a file nor a published model nor a shape; `},
		"of no shape":           {spec.Model{Config: "odd.json"}, "odd.json, num_hidden_layers, hidden_size: "},
		"a slip in a line":      {spec.Model{Shape: "transformer layrs=3"}, "layrs: is no field of a model; "},
		"a line and no numbers": {spec.Model{Shape: "cnn params=5M"}, "gmacs: "},
	} {
		j, err := pastruns.Modelled(spec.Job{Name: "a", Model: c.model}, folder)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case name == "a file" && !strings.Contains(j.Model.Shape, "layers=32"):
			t.Errorf("the shape of a file is %q", j.Model.Shape)
		}
	}
}
