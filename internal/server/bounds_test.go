package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// Values that are too large are refused with the name of their field, before they reach the log.
func TestRequests_AboveTheirBoundsReachNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	as := w.take(w.rent("job"))
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Operator})
	metrics := map[string]float64{}
	for n := range 25_000 {
		metrics[fmt.Sprint("m", n)] = 1
	}
	var tags strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&tags, `"t%d":"x",`, n)
	}
	before := w.control.Durable()
	now := time.Now()
	for field, c := range map[string]struct {
		path, token string
		body        any
	}{
		"messages[0].step.metrics": {"/v1/agent/report", as.AttemptToken, api.Report{Attempt: as.Attempt,
			Messages: []api.Message{{Seq: 1, At: now, Step: &api.Step{Step: 1, Metrics: metrics}}}}},
		"messages[0].refused.why": {"/v1/agent/report", as.AttemptToken, api.Report{Attempt: as.Attempt,
			Messages: []api.Message{{Seq: 1, At: now, Refused: &api.Refused{Why: strings.Repeat("w", 1_900_000)}}}}},
		"trouble": {"/v1/agent/report", as.AttemptToken, api.Report{Attempt: as.Attempt, Trouble: strings.Repeat("w", 1001)}},
		"tags":    {"/v1/jobs", ann, `{"spec":{"name":"x","command":"true","tags":{` + tags.String() + `"t":"x"}}}`},
		"note":    {"/v1/tokens", ann, api.NewToken{Note: strings.Repeat("n", 201)}},
	} {
		rec, p := w.ask("POST", c.path, c.token, c.body)
		if rec.Code != http.StatusUnprocessableEntity || p.Field != field || p.Fix == "" {
			t.Errorf("%s: %d, field %s, fix %s, %.200s", field, rec.Code, p.Field, p.Fix, p.Title+p.Detail)
		}
	}
	if n := w.control.Durable() - before; n > 2 { // the first refusal of each kind
		t.Errorf("they left %d events", n)
	}
}

// The program of a task may know its agent's token, if both run as one user, so the token has limits.
func TestAgent_IsRateLimited(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 100_000 })
	as := w.take(w.rent("job"))
	seq, taken, slowed := int64(0), 0, 0
	for range 100 {
		r := api.Report{Attempt: as.Attempt}
		for range 64 {
			seq++
			r.Messages = append(r.Messages, api.Message{Seq: seq, At: time.Now(), Refused: &api.Refused{Manifest: "m", Why: "w"}})
		}
		switch rec, p := w.ask("POST", "/v1/agent/report", as.AttemptToken, r); rec.Code {
		case http.StatusOK:
			taken += len(r.Messages)
		case http.StatusTooManyRequests:
			slowed++
			seq -= int64(len(r.Messages))
			if rec.Header().Get("Retry-After") == "" || p.Fix == "" {
				t.Fatalf("%+v", p)
			}
		default:
			t.Fatalf("%d %+v", rec.Code, p)
		}
	}
	if taken < 1000 || taken > 4000 || slowed == 0 {
		t.Errorf("%d messages were taken at once, and %d reports slowed", taken, slowed)
	}
}

// Each line of the threat model names an existing test.
func TestThreatModel_NamesExistingTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	must.Do(t, err)
	known := map[string]bool{}
	look := func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(b), -1) {
			known[m[1]] = true
		}
		return err
	}
	err = errors.Join(filepath.WalkDir("..", look), filepath.WalkDir("../../client", look))
	must.Do(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("docs/security.md names %d tests", len(named))
	}
	for _, m := range named {
		if !known[m[1]] {
			t.Errorf("docs/security.md names %s, which is no test", m[1])
		}
	}
}
