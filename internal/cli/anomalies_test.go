package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAnomaliesScore_GivesALineForEveryRow(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var file strings.Builder
	file.WriteString("timestamp,value\n")
	for i := range 500 {
		value := fmt.Sprint(40 + i*7%5)
		switch i {
		case 300:
			value = "400"
		case 400:
			value = ""
		}
		fmt.Fprintf(&file, "2026-10-%02d %02d:%02d:00,%s\n", 1+i/288, i/12%24, i*5%60, value)
	}
	h.write("cpu.csv", file.String())
	lines := strings.Split(strings.TrimSpace(h.out("anomalies", "score", "--series", "cpu.csv", "--json")), "\n")
	if len(lines) != 500 {
		t.Fatalf("%d lines of 500 rows", len(lines))
	}
	for i, line := range lines {
		var got struct {
			Timestamp string
			Score     *float64
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || !strings.HasPrefix(got.Timestamp, "2026-10-0") {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case i == 400:
			if got.Score != nil {
				t.Errorf("a row without a value scores %g", *got.Score)
			}
		case (*got.Score >= 0.5) != (i == 300):
			t.Errorf("row %d scores %g", i, *got.Score)
		}
	}
	if text := h.out("anomalies", "score", "--series", "cpu.csv"); strings.Count(text, "\n") != 2 || !strings.Contains(text, "2026-10-02 01:00:00") {
		t.Errorf("alerts: %s", text)
	}
	h.write("bad.csv", "timestamp,value\n2026-10-01 00:00:00,1\n2026-10-01 00:05:00,many\n")
	h.write("none.csv", "")
	for args, says := range map[string]string{
		"--series bad.csv":     `bad.csv:3: the value "many" is not a finite number`,
		"--series none.csv":    "none.csv: the file is empty",
		"--series missing.csv": "read missing.csv",
	} {
		if text, err := h.try(append([]string{"anomalies", "score"}, strings.Fields(args)...)...); err == nil || !strings.Contains(text, says) {
			t.Errorf("%s: %v %s", args, err, text)
		}
	}
}
