package spec_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
)

// Any JSON job file is read or refused, and deep nesting costs no more than its text.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{`{"name":"a","command":"true"}`, `{"command":"x","checkpoint":{"dir":"c","store":"s3://b"}}`, `[]`, `{`,
		`{"any_of":[{"machine":"p5"},{"cpus":1e9}],"command":"x"}`, `{"env":{"A":"\u0000"},"command":"x"}`, `{"a":1}{"b":2}`, `null`,
		`{"command":"a","command":"b"}`, strings.Repeat(`[`, 2000), strings.Repeat(`{"a":`, 2000)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		j, _, err := spec.ParseJSON(spec.Run, text, "job", now)
		if err == nil && (j.Name == "" || j.Validate(now) != nil) {
			t.Errorf("%q is taken as %+v: %v", text, j, j.Validate(now))
		}
	})
}

// A request of open brackets is refused for its depth without reading it to the end.
func TestParseJSON_RefusesDeepNesting(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		_, _, err := spec.ParseJSON(spec.Run, []byte(strings.Repeat(open, (1<<20)/len(open))), "job", time.Time{})
		if err == nil || !strings.Contains(err.Error(), "nests deeper than 100") {
			t.Errorf("%s without end: %v", open, err)
		}
	}
}
