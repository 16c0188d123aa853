package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A span has a unit or is 0; an error is one line with the place and the fix.
func TestSpan_ParsesUnits(t *testing.T) {
	for text, want := range map[string]string{
		"timing: {idle: 10m}":               "",
		"timing: {idle: 0}":                 "",
		"timing: {idle: 10}":                `line 3: "10" is not a duration: write it with its unit`,
		"timing: {idle: -5m}":               `line 3: "-5m" is not a duration`,
		"timing: {poll: soon}":              `line 3: "soon" is not a duration`,
		"machines: /var/lib/scrimp":         "line 3: machines is unknown there: an engine has name, kind",
		"timing: {idle: 5m, waiting: true}": "line 3: waiting is unknown there",
		"timing: 5":                         "line 3: a number `5` does not belong there",
		"agents: [a]":                       "line 3: a list stands where text belongs",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, SettingsName), []byte("engines:\n  - name: local\n    "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := Settings(dir)
		if want == "" {
			usual := Timing{Poll: time.Second, Idle: time.Hour}
			got := list[0].Timing.Over(usual)
			if err != nil || got.Poll != time.Second || got.Idle != map[bool]time.Duration{true: 10 * time.Minute}[strings.Contains(text, "10m")] {
				t.Errorf("%s: %+v, %v", text, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q in one line", text, err, want)
		}
	}
}
