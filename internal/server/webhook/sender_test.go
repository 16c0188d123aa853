package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/server/tries"
	"scrimp/internal/test/must"
)

// word is the message of these tests.
type word struct{ ID, Job, State, Why string }

// hook answers with a list of statuses; it repeats the last one.
type hook struct {
	*httptest.Server
	got []http.Header
	all []word
}

func newHook(t *testing.T, answer func(n int, w http.ResponseWriter)) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var x word
		b, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(b, &x); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, b, err)
		}
		h.got, h.all = append(h.got, r.Header), append(h.all, x)
		answer(len(h.all), w)
	}))
	t.Cleanup(h.Close)
	return h
}

const token = "T0PSECRET"

// patient is a sender that records its waits instead of waiting.
func patient(t *testing.T) (tell Sender, waits *[]time.Duration) {
	var log bytes.Buffer
	waits = &[]time.Duration{}
	tell = NewSender("1", true, nil, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	tell.pause = func(_ context.Context, d time.Duration) error { *waits = append(*waits, d); return nil }
	t.Cleanup(func() {
		if strings.Contains(log.String(), token) {
			t.Errorf("the log has the secret:\n%s", &log)
		}
	})
	return tell, waits
}

func someWord() word {
	return word{ID: "notify/j/succeeded", Job: "j", State: "succeeded", Why: "completed"}
}

// tells delivers the message.
func (s Sender) tells(ctx context.Context, target string) error {
	w := someWord()
	_, err := s.Deliver(ctx, target, "ann", w.Job, w.ID, w, tries.Progress{})
	return err
}

func TestSender_RetriesWithTheSameID(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(n int, w http.ResponseWriter) {
		if n <= 2 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	tell, waits := patient(t)
	must.Do(t, tell.tells(t.Context(), h.URL+"/hook/"+token))
	if !slices.Equal(*waits, []time.Duration{time.Second, 2 * time.Second}) {
		t.Errorf("waits %v, want 1 s and 2 s", *waits)
	}
	if len(h.all) != 3 {
		t.Fatalf("told %d times, want 3", len(h.all))
	}
	for i, w := range h.all {
		if w != someWord() || h.got[i].Get("Idempotency-Key") != "notify/j/succeeded" ||
			h.got[i].Get("Content-Type") != "application/json" {
			t.Errorf("try %d: %+v, %v", i+1, w, h.got[i])
		}
	}
}

func TestSender_DoesNotRetryRefusals(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone, http.StatusUnauthorized,
		http.StatusMovedPermanently} {
		h := newHook(t, func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		tell, _ := patient(t)
		if err := tell.tells(t.Context(), h.URL+"/"+token); !errors.Is(err, ErrRefused) || len(h.all) != 1 ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%d: %v after %d tries", status, err, len(h.all))
		}
	}
}

func TestSender_HonoursRetryAfter(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(n int, w http.ResponseWriter) {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.Header().Set("Retry-After", "999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	tell, waits := patient(t)
	if err := tell.tells(t.Context(), h.URL); err != nil ||
		!slices.Equal(*waits, []time.Duration{30 * time.Second, Rule.Longest}) {
		t.Errorf("%v, waits %v, want 30 s and %v", err, *waits, Rule.Longest)
	}
}

// Retry-After may be a date, which counts by the clock of the receiver. What is no wait asks for none.
func TestSender_HonoursRetryAfterAsADate(t *testing.T) {
	t.Parallel()
	at := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	asks := []string{at.Add(90 * time.Second).Format(http.TimeFormat), at.Add(-time.Hour).Format(http.TimeFormat), "-5", "soon", ""}
	h := newHook(t, func(n int, w http.ResponseWriter) {
		if n <= len(asks) {
			w.Header().Set("Date", at.Format(http.TimeFormat))
			w.Header().Set("Retry-After", asks[n-1])
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	tell, waits := patient(t)
	want := []time.Duration{90 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
	if err := tell.tells(t.Context(), h.URL); err != nil || !slices.Equal(*waits, want) {
		t.Errorf("%v, waits %v, want %v", err, *waits, want)
	}
}

// Each answer that Slack and PagerDuty document: what they refuse is not sent again, their own failures are.
func TestSender_KnowsTheAnswersOfSlackAndPagerDuty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		body    string
		refused bool
	}{
		{400, "invalid_payload", true}, {400, "user_not_found", true}, {403, "action_prohibited", true},
		{403, "invalid_token", true}, {404, "channel_not_found", true}, {404, "no_service", true},
		{410, "channel_is_archived", true}, {500, "rollup_error", false}, {429, "rate_limited", false},
		{400, `{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect"]}`, true},
		{429, `{"status":"throttle exceeded","message":"Requests for this service are arriving too quickly."}`, false},
		{500, "", false}, {502, "", false}, {503, "", false}, {504, "", false}, {408, "", false},
	} {
		h := newHook(t, func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		tell, _ := patient(t)
		err := tell.tells(t.Context(), h.URL)
		if c.refused != errors.Is(err, ErrRefused) || !c.refused && (err != nil || len(h.all) != 2) || c.refused && len(h.all) != 1 {
			t.Errorf("%d %s: %v after %d tries", c.status, c.body, err, len(h.all))
		}
	}
}

func TestSender_GivesUpOnUnreachableWebhooks(t *testing.T) {
	t.Parallel()
	h := newHook(t, nil)
	gone := h.URL + "/" + token
	h.Close()
	tell, waits := patient(t)
	err := tell.tells(t.Context(), gone)
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
	if n := len(*waits); n != Rule.Most-1 || (*waits)[n-1] > Rule.Longest {
		t.Errorf("%d waits: %v", n, *waits)
	}
	if err := tell.tells(t.Context(), "http://%zz/"+token); !errors.Is(err, ErrRefused) ||
		strings.Contains(err.Error(), token) {
		t.Errorf("a bad address: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tell.pause = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	if err := tell.tells(ctx, gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that leaves: %v", err)
	}
}

func TestAddress_InsertsSecrets(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"HOOK": "abc", "B": "x$HOOK"}
	for notify, want := range map[string]string{
		"https://a/$HOOK": "https://a/abc", "https://a/${HOOK}x?q=$OTHER": "https://a/abcx?q=$OTHER",
		"https://a/$B": "https://a/x$HOOK", "https://a/$HOOKS": "https://a/$HOOKS",
	} {
		if got := Address(notify, secrets); got != want {
			t.Errorf("%s: %s, want %s", notify, got, want)
		}
	}
}
