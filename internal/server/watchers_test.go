package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// A thousand watchers of one team with 10,000 queued jobs do not slow another team's submissions.
func TestFeed_ThousandWatchersDoNotSlowOthers(t *testing.T) {
	lane.Nightly(t, "it measures a server with a thousand readers")
	dir := t.TempDir()
	st, err := sqlite.Open(dir)
	check(t, err)
	Fill(t, st, 10_000)
	check(t, st.Close())
	w := newWorld(t, func(o *Options) { o.Dir = dir })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	bob := w.user("bob", identity.Grant{Team: "text", Role: identity.Submitter})
	amy := w.user("amy", identity.Grant{Team: "vision", Role: identity.Submitter})
	front := httptest.NewServer(w.h)
	defer front.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	send := func(ctx context.Context, method, path, token, body string) (*http.Response, error) {
		r, _ := http.NewRequestWithContext(ctx, method, front.URL+path, bytes.NewReader([]byte(body)))
		r.Header.Set("Authorization", "Bearer "+token)
		return client.Do(r)
	}
	submit := func(token, name, team string) time.Duration {
		t.Helper()
		at := time.Now()
		resp, err := send(t.Context(), "POST", "/v1/jobs", token, aJob(name, team))
		must.Do(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", name, resp.Status)
		}
		return time.Since(at)
	}
	measure := func(name string) (p50, p99, most time.Duration) {
		var took []time.Duration
		for n := range 400 {
			if n%2 == 0 { // the watched team changes, too
				submit(amy, fmt.Sprint(name, "-amy-", n), "vision")
			}
			took = append(took, submit(bob, fmt.Sprint(name, "-bob-", n), "text"))
			time.Sleep(15 * time.Millisecond)
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	p50, p99, most := measure("alone")
	t.Logf("alone: p50 %v, p99 %v, most %v", p50, p99, most)
	ctx, leave := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	var answered atomic.Int32
	defer watchers.Wait()
	defer leave()
	for user := range 10 {
		token := w.user(fmt.Sprintf("vi%d", user), identity.Grant{Team: "vision", Role: identity.Viewer})
		for n := range 100 {
			path := "/v1/events"
			switch job := fmt.Sprintf("/v1/jobs/j-%07d", user*1000+n); {
			case n < 40:
				path = job + "/watch"
			case n < 70:
				path = job + "/log?follow=1"
			case n < 85:
				path = "/v1/events?after=1" // the whole log
			}
			watchers.Go(func() { // a watcher of output gets nothing until there is some
				resp, err := send(ctx, "GET", path, token, "")
				if err != nil {
					return
				}
				answered.Add(1)
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", path, resp.Status)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
	}
	eventually.True(t, "they watch", func() bool { return answered.Load() == 700 })
	p50, p99, most = measure("watched")
	t.Logf("with 1,000 watchers: p50 %v, p99 %v, most %v", p50, p99, most)
	if p99 > 100*time.Millisecond {
		t.Errorf("another team's submission takes %v at p99, want 100 ms at most", p99)
	}
}

// A job is encoded once for all its watchers, whether they follow that job, all jobs, or catch up; and each of them
// gets it.
func TestFeed_EncodesAJobOnceForAllWatchers(t *testing.T) {
	t.Parallel()
	const each, jobs = 60, 30
	w := newWorld(t, func(o *Options) { o.Rate = 100_000 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	for n := range jobs {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", n), "vision"), nil)
	}
	front := httptest.NewServer(w.h)
	defer front.Close()
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	var ends [3]atomic.Int32 // watchers that got the last change
	for n, path := range []string{"/v1/jobs/j1/watch", "/v1/events", "/v1/events?after=1"} {
		token := w.user(fmt.Sprint("vi", n), identity.Grant{Team: "vision", Role: identity.Viewer})
		for range each {
			all.Go(func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", front.URL+path, nil)
				r.Header.Set("Authorization", "Bearer "+token)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = resp.Body.Close() }()
				for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
					var j client.Job
					text := strings.TrimPrefix(lines.Text(), "data: ")
					if json.Unmarshal([]byte(text), &j) == nil && j.ID == "j1" && j.State == "cancelled" {
						ends[n].Add(1)
						return
					}
				}
			})
		}
	}
	w.must("POST", "/v1/jobs/j1/end", api.End{}, nil)
	for _, n := range []int{0, 2} { // watchers of all jobs may have come after the end
		eventually.True(t, "all got the end", func() bool { return ends[n].Load() == each })
	}
	if drawn := w.jobs.Drawn(); drawn > 3*jobs {
		t.Errorf("%d watchers of %d jobs: they are encoded %d times", 3*each, jobs, drawn)
	}
}
