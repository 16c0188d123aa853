package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/client"
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

// A plan is listed until it is removed, and what is incomplete or unknown is refused with the option.
func TestAnomalies_PlansAndAnswersAreOfCommands(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if text := h.out("anomalies", "planned"); !strings.HasPrefix(text, "Nothing is planned.") {
		t.Errorf("%s", text)
	}
	name := strings.Fields(h.out("anomalies", "planned", "--until", "2d", "--project", "ocr", "--why", "a benchmark"))[0]
	list := h.out("anomalies", "planned")
	if !strings.Contains(list, name) || !strings.Contains(list, "project ocr") || !strings.Contains(list, "a benchmark") {
		t.Errorf("%s", list)
	}
	var one struct {
		Name         string
		Since, Until time.Time
	}
	if err := json.Unmarshal([]byte(h.out("anomalies", "planned", "--json")), &one); err != nil || one.Name != name || one.Until.Sub(one.Since) != 48*time.Hour {
		t.Errorf("%v %+v", err, one)
	}
	if text := h.out("anomalies", "unplan", name); text != name+" is no longer planned.\n" {
		t.Errorf("%q", text)
	}
	if text := h.out("anomalies", "planned"); !strings.HasPrefix(text, "Nothing is planned.") {
		t.Errorf("%s", text)
	}
	if text := h.out("anomalies", "--all"); !strings.HasPrefix(text, "No incidents since") {
		t.Errorf("%s", text)
	}
	for _, c := range []struct{ args, says string }{{"snooze a-none --until 1d", `no incident "a-none"`}, {"confirm a-none", `no incident "a-none"`},
		{"dismiss a-none --why x", `no incident "a-none"`}, {"snooze a-none", "until"}, {"dismiss a-none", "why"}, {"snooze --until 1d", "NAME is missing"},
		{"planned --until 1d", "--until or --why is missing"}, {"planned --until soon --why x", "until is not a time"},
		{"planned --until 2001-01-01 --why x", "until is not after since"}, {"planned --until 1d --why x --team ghost --job ghost", ""},
		{"planned --team=", "--team is empty"}, {"planned --until= --why=x", "--until is empty"}, {"unplan p-none", `no planned span "p-none"`}} {
		text, err := h.try(append([]string{"anomalies"}, strings.Fields(c.args)...)...)
		if (err == nil) != (c.says == "") || !strings.Contains(text, c.says) {
			t.Errorf("%s: %v %s", c.args, err, text)
		}
	}
}

// An alert is listed without its secret until it is removed, also one that is read from standard input, and its test
// says what the receiver answered.
func TestAnomalies_AlertsAreAddedTestedAndRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if text := h.out("anomalies", "alert"); !strings.HasPrefix(text, "No alerts.") {
		t.Errorf("%s", text)
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone/S3CRET" {
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer hook.Close()
	var names []string
	for path, code := range map[string]bool{"/S3CRET": true, "/gone/S3CRET": false} {
		var v client.AnomalyAlert
		if err := json.Unmarshal([]byte(h.out("anomalies", "alert", "add", "--to", hook.URL+path, "--kind", "spend,idle-machine", "--above", "$5",
			"--json")), &v); err != nil {
			t.Fatal(err)
		}
		names = append(names, v.Name)
		text, err := h.try("anomalies", "alert", "test", v.Name)
		if (err == nil) != code || !strings.Contains(text, map[bool]string{true: "took the test", false: "status 410"}[code]) ||
			strings.Contains(text, "S3CRET") {
			t.Errorf("%s: %v %s", path, err, text)
		}
	}
	list := h.out("anomalies", "alert", "list")
	for _, want := range append(names, "webhook at 127.0.0.1:", "all teams, idle machine, spend, above 5", "test: delivered", "test: webhook refuses: status 410") {
		if !strings.Contains(strings.Join(strings.Fields(list), " "), want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	if strings.Contains(list, "S3CRET") {
		t.Errorf("the list has the secret: %s", list)
	}
	for _, c := range [][2]string{{"--to x:y", "to: to names no receiver"}, {"--to https://x.org --kind all", `there is no kind "all"`},
		{"--to https://x.org --above much", `--above much: "much" is not a decimal amount`}, {"", `--to is missing`}, {"--to mailto:ann@example.org", "this server does not send e-mail"}} {
		if text, err := h.try(append([]string{"anomalies", "alert", "add"}, strings.Fields(c[0])...)...); err == nil || !strings.Contains(text, c[1]) {
			t.Errorf("%s: %v %s", c[0], err, text)
		}
	}
	for _, name := range names {
		h.out("anomalies", "alert", "remove", name)
	}
	if text, err := h.try("anomalies", "alert", "remove", names[0]); err == nil || !strings.Contains(text, "there is no alert") {
		t.Errorf("%v %s", err, text)
	}
	if text := h.out("anomalies", "alert"); !strings.HasPrefix(text, "No alerts.") {
		t.Errorf("%s", text)
	}
}
