package notice

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inside sends requests to a handler without a network, so that a bubble's clock can run.
type inside struct{ h http.Handler }

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// watched runs the watchers against h for a span of bubble time, and returns the notices they found and when.
func watched(t *testing.T, e Endpoints, h http.Handler, span time.Duration) (notices []Notice, after []time.Duration) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var mu sync.Mutex
	Watch(ctx, e, &http.Client{Transport: inside{h}}, func(n Notice) {
		mu.Lock()
		defer mu.Unlock()
		notices, after = append(notices, n), append(after, time.Since(start))
	})
	return notices, after
}

// ec2 is the metadata service according to its documentation.
type ec2 struct {
	noticeAt, adviceAt time.Time
	until              func() time.Time
	tokens             int
	expired            map[string]bool
	v1                 bool
	down               func() bool
}

func (s *ec2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down != nil && s.down() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == awsToken {
		if s.v1 {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodPut || r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		s.tokens++
		_, _ = fmt.Fprintf(w, "token-%d", s.tokens)
		return
	}
	if token := r.Header.Get("X-aws-ec2-metadata-token"); !s.v1 && (token != fmt.Sprintf("token-%d", s.tokens) || s.expired[token]) {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	switch {
	case r.URL.Path == awsAction && !s.noticeAt.IsZero() && !time.Now().Before(s.noticeAt):
		_, _ = fmt.Fprintf(w, `{"action": "terminate", "time": "%s"}`, s.until().UTC().Format(time.RFC3339))
	case r.URL.Path == awsRebalance && !s.adviceAt.IsZero() && !time.Now().Before(s.adviceAt):
		_, _ = fmt.Fprintf(w, `{"noticeTime": "%s"}`, s.adviceAt.UTC().Format(time.RFC3339))
	default:
		http.NotFound(w, r)
	}
}

func TestAWS_ReportsNoticeOnceWithinTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(2 * time.Minute)
		s := &ec2{noticeAt: time.Now().Add(10*time.Second + time.Millisecond), adviceAt: time.Now().Add(5 * time.Second), until: func() time.Time { return until }}
		notices, after := watched(t, Endpoints{AWS: "http://aws/"}, s, time.Minute)
		want := []Notice{{Source: "aws", Advice: true}, {Source: "aws", Until: until.UTC()}}
		if !slices.Equal(notices, want) {
			t.Fatalf("notices %v, want %v", notices, want)
		}
		if late := after[1] - 10*time.Second; late > 2*time.Second {
			t.Errorf("found %v after it was given", late)
		}
		if s.tokens != 1 {
			t.Errorf("%d tokens for one minute, want 1", s.tokens)
		}
	})
}

func TestAWS_ReportsOnlyEarlierTimesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &ec2{noticeAt: start.Add(time.Second), until: func() time.Time {
			if time.Since(start) > 20*time.Second {
				return start.Add(40 * time.Second)
			}
			return time.Now().Add(2 * time.Minute)
		}}
		notices, _ := watched(t, Endpoints{AWS: "http://aws"}, s, 30*time.Second)
		if len(notices) != 2 || !notices[1].Until.Equal(start.Add(40*time.Second)) {
			t.Errorf("notices %v, want the first and the nearer one", notices)
		}
	})
}

func TestAWS_RenewsTokenAndFallsBackToVersionOne(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*ec2)
	}{
		{"the token expires", func(s *ec2) { s.expired = map[string]bool{"token-1": true} }},
		{"no tokens are known", func(s *ec2) { s.v1 = true }},
		{"the service is away for a while", func(s *ec2) {
			start := time.Now()
			s.down = func() bool { return time.Since(start) < 7*time.Second }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &ec2{noticeAt: time.Now().Add(3 * time.Second), until: func() time.Time { return time.Now().Add(time.Minute) }}
				c.set(s)
				if notices, _ := watched(t, Endpoints{AWS: "http://aws"}, s, 20*time.Second); len(notices) != 1 {
					t.Errorf("notices %v, want one", notices)
				}
			})
		})
	}
}

func TestGCE_ReportsPreemptionAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(100 * time.Second)
		asked := 0
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Path != gcePreempted {
				http.Error(w, "forbidden", http.StatusForbidden)
				return
			}
			q := r.URL.Query()
			if q.Get("wait_for_change") == "true" {
				wait, _ := time.ParseDuration(q.Get("timeout_sec") + "s")
				if d := time.Until(at); d > 0 && q.Get("last_etag") == "e-false" {
					wait = min(wait, d)
				}
				select {
				case <-time.After(wait):
				case <-r.Context().Done():
				}
			}
			if time.Now().Before(at) {
				w.Header().Set("ETag", "e-false")
				_, _ = fmt.Fprint(w, "FALSE")
				return
			}
			w.Header().Set("ETag", "e-true")
			_, _ = fmt.Fprint(w, "TRUE")
		})
		notices, after := watched(t, Endpoints{GCE: "metadata"}, h, 4*time.Minute)
		if len(notices) != 1 || notices[0].Source != "gcp" {
			t.Fatalf("notices %v, want one", notices)
		}
		if after[0] > 101*time.Second || !notices[0].Until.Equal(at.Add(after[0]-100*time.Second+30*time.Second).UTC()) {
			t.Errorf("found after %v, until %v", after[0], notices[0].Until)
		}
		if asked > 10 {
			t.Errorf("asked %d times in four minutes, want a waiting request", asked)
		}
	})
}

func TestAzure_ReportsEvictionOfThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		until := start.Add(45 * time.Second).Truncate(time.Second)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata") != "true" {
				http.Error(w, "bad request", http.StatusBadRequest)
				return
			}
			if r.URL.Path == "/metadata/instance/compute/name" {
				_, _ = fmt.Fprint(w, "vmss_1")
				return
			}
			events := `{"EventId":"A","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["vmss_1"],"EventStatus":"Scheduled","NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT","Description":"","EventSource":"Platform","DurationInSeconds":5},
				{"EventId":"B","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["vmss_2"],"EventStatus":"Scheduled","NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT","Description":"","EventSource":"Platform","DurationInSeconds":-1}`
			if time.Since(start) > 9*time.Second {
				events += fmt.Sprintf(`,{"EventId":"C","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["vmss_1"],"EventStatus":"Scheduled","NotBefore":%q,"Description":"","EventSource":"Platform","DurationInSeconds":-1}`, until.UTC().Format(http.TimeFormat))
			}
			_, _ = fmt.Fprintf(w, `{"DocumentIncarnation":2,"Events":[%s]}`, events)
		})
		notices, _ := watched(t, Endpoints{Azure: "http://azure"}, h, time.Minute)
		if want := []Notice{{Source: "azure", Until: until.UTC()}}; !slices.Equal(notices, want) {
			t.Errorf("notices %v, want %v", notices, want)
		}
	})
}
