package cli_test

import (
	"strings"
	"testing"
)

// A list shows some of the jobs, says which and how many it omits, and shows all on request. JSON has all.
func TestJobs_ReportsOmittedJobs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("huge.yaml", "name: huge\ncommand: 'true'\nresources: {cpus: 100000+}\n")
	for range 4 {
		h.do("run", "-y", "-d", "--force", "huge.yaml")
	}
	h.do("cancel", "huge-2")
	for _, c := range []struct{ args, shows, says string }{
		{"jobs", "huge huge-2 huge-3 huge-4", ""},
		{"jobs --all", "huge huge-2 huge-3 huge-4", ""},
		{"jobs --limit 4", "huge huge-2 huge-3 huge-4", ""},
		{"jobs --limit 2", "huge-3 huge-4", "the newest 2 of 4 jobs; --all lists them all"},
		{"queue --limit 2", "huge huge-3", "the first 2 of 3 jobs that wait or run; --all lists them all"},
		{"queue", "huge huge-3 huge-4", ""},
		{"status", "huge huge-3 huge-4", ""},
	} {
		var shown []string
		out := h.do(strings.Fields(c.args)...)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "huge") {
				shown = append(shown, strings.Fields(line)[0])
			}
		}
		if got := strings.Join(shown, " "); got != c.shows || !strings.Contains(out, c.says) || strings.Contains(out, "These are") != (c.says != "") {
			t.Errorf("%s shows %s, want %s and %q:\n%s", c.args, got, c.shows, c.says, out)
		}
	}
	for args, want := range map[string]int{"jobs --json": 4, "queue --json": 3, "jobs --json --limit 3": 4} {
		if n := strings.Count(h.do(strings.Fields(args)...), "\n"); n != want {
			t.Errorf("%s has %d lines, want %d", args, n, want)
		}
	}
	out := h.do("jobs", "--by", "state")
	for _, want := range []string{"STATE", "queued        3  3 queued", "cancelled     1  1 cancelled", "total         4  3 queued, 1 cancelled",
		"unknown"} {
		if !strings.Contains(out, want) {
			t.Errorf("jobs by state do not have %q:\n%s", want, out)
		}
	}
	if out := h.do("jobs", "--by", "tag:model", "--status", "queued", "--json"); !strings.Contains(out, `"name":"(none)"`) ||
		!strings.Contains(out, `"jobs":3`) || !strings.Contains(out, `"will_cost":null`) || !strings.Contains(out, `"unknown":3`) {
		t.Errorf("jobs by tag: %s", out)
	}
	for _, args := range []string{"jobs --by size", "jobs --by team --limit 1", "jobs --limit 0", "queue --limit -1", "jobs --limit 1 --all"} {
		if out, err := h.try(strings.Fields(args)...); err == nil {
			t.Errorf("%s passes: %s", args, out)
		}
	}
}
