package workspace

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/wire/api"
)

// pickWritten keeps the newest files that were made or changed, as many as fit.
func TestPickWritten_KeepsNewest(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	list := []written{{"old", version{5, at(1)}}, {"edited", version{5, at(2)}}, {"grown", version{6, at(1)}},
		{"b", version{30, at(4)}},
		{"a", version{20, at(4)}}, {"huge", version{90, at(5)}}, {"last", version{10, at(9)}}}
	before := map[string]version{"old": {5, at(1)}, "edited": {5, at(1)}, "grown": {5, at(1)}, "gone": {1, at(1)}}
	for most, c := range map[int64]struct {
		want  string
		left  int
		bytes int64
	}{
		1000: {"last huge a b edited grown", 0, 0},
		100:  {"last huge", 4, 61}, // no other file is small enough for the rest
		80:   {"last a b edited grown", 1, 90},
		0:    {"", 6, 161},
	} {
		names, left, bytes := pickWritten(list, before, most)
		if got := strings.Join(names, " "); got != c.want || left != c.left || bytes != c.bytes {
			t.Errorf("within %d: %q, and %d files of %d bytes are left out; want %q, %d, %d", most, got, left, bytes, c.want,
				c.left, c.bytes)
		}
	}
	if api.OutputsWritten != spec.Written {
		t.Error("the wire and the job file have two words for it")
	}
}
