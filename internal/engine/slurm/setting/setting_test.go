package setting

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// Wrong settings are refused with what to write.
func TestRead_RefusesWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                          "no partition",
		"{partitions: [{name: a b}]}": "as sinfo has it",
		"{partitions: [{name: a, capacity: cheap}]}":                 "write spot",
		"{partitions: [{name: a, rate: free}]}":                      "dollars an hour",
		"{partitions: [{name: a, rate: 0}]}":                         "dollars an hour",
		"{partitions: [{name: a}, {name: a}]}":                       "listed twice",
		"{partitions: [{name: a, cpus: 4}]}":                         "memory: 32GiB",
		"{partitions: [{name: a, accelerators: 1}]}":                 "cpus: 8",
		"{partitions: [{name: a, accelerator: h100}]}":               "accelerators: 1",
		"{partitions: [{name: a, options: [--wrap=x]}]}":             "is not passed on",
		"{partitions: [{name: a, options: [\"--nice=1 --uid=0\"]}]}": "is not passed on",
		"{partitions: [{name: a, account: \"a b\"}]}":                "as Slurm has it",
		"{partitions: [{name: a}], shared: x}":                       "absolute path",
		"{partitions: [{name: a}], requeue: true}":                   "scrimp submits the next attempt",
		"{partitions: [{name: a}], nodes: 4}":                        "nodes is not known",

		"{partitions: [{name: a}], conf: /x, rest: {url: 'unix:///s'}}":                  "remove rest, or conf",
		"{partitions: [{name: a}], rest: {url: ssh://x}}":                                "unix:///run",
		"{partitions: [{name: a}], rest: {url: unix://s}}":                               "absolute path",
		"{partitions: [{name: a}], rest: {url: 'https://u:p@h', token_file: /t}}":        "remove user",
		"{partitions: [{name: a}], rest: {url: https://h}}":                              "token_file is missing",
		"{partitions: [{name: a}], rest: {url: 'http://h:6820', token_file: /t}}":        "in the clear",
		"{partitions: [{name: a}], rest: {url: 'https://h', token_file: t}}":             "absolute path",
		"{partitions: [{name: a}], rest: {url: 'https://h', token_file: /t, token: x}}":  "token is not known",
		"{partitions: [{name: a}], rest: {url: 'https://h', token_file: /t, user: a b}}": "id -un",
		"{partitions: [{name: a}], rest: {url: 'unix:///s', version: v0.0.37}}":          "v0.0.38, ",
		"{partitions: [{name: a}], rest: {url: 'unix:///s'}, options: [--switches=2]}":   "slurmrestd has no option",
		"{partitions: [{name: a, options: [--nice=low]}], rest: {url: 'unix:///s'}}":     "takes a number",
	} {
		var s engine.Setting
		must.Do(t, yaml.Unmarshal([]byte("with: "+text), &s))
		if _, err := Read(&s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
