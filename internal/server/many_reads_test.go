package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store/sqlite"
)

// pieces records how a response is written.
type pieces struct {
	*httptest.ResponseRecorder
	largest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	return p.ResponseRecorder.Write(b)
}

// A list of all jobs is sent page by page, so concurrent requests need no memory in proportion to the number of
// jobs. It has each job once, in order.
func TestList_OfAllJobsIsNeverWholeInMemory(t *testing.T) {
	t.Parallel()
	const jobs = 2100 // two pages, and some
	dir := t.TempDir()
	st, err := sqlite.Open(dir)
	check(t, err)
	Fill(t, st, jobs)
	check(t, st.Close())
	w := newWorld(t, func(o *Options) { o.Dir = dir })
	admin := w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin})
	answer := &pieces{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/v1/jobs", nil)
	r.Header.Set("Authorization", "Bearer "+admin)
	w.h.ServeHTTP(answer, r)
	var list []client.Job
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list) != jobs {
		t.Fatalf("%d jobs: %v", len(list), err)
	}
	seen := map[string]bool{}
	for _, j := range list {
		seen[j.ID] = true
	}
	if list[0].ID != "j-0000000" || len(seen) != jobs {
		t.Errorf("the list begins with %s and has %d jobs", list[0].ID, len(seen))
	}
	if most := answer.Body.Len() / 2; answer.largest > most {
		t.Errorf("%d of %d bytes are in memory at once", answer.largest, answer.Body.Len())
	}
}

// stuck is a reader that takes nothing until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	begun *sync.WaitGroup
	let   <-chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.begun.Done()
	<-s.let
	return s.ResponseRecorder.Write(b)
}

// One user can have eight responses in memory at once; further ones wait, and other users do not.
func TestReads_OfOneUserDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	vi := w.user("vi", identity.Grant{Team: identity.Everywhere, Role: identity.Viewer})
	bob := w.user("bob", identity.Grant{Team: identity.Everywhere, Role: identity.Viewer})
	begun, let, all := &sync.WaitGroup{}, make(chan struct{}), sync.WaitGroup{}
	asks := func(ctx context.Context, token string, to http.ResponseWriter) {
		r := httptest.NewRequest(http.MethodGet, "/v1/market", nil).WithContext(ctx)
		r.Header.Set("Authorization", "Bearer "+token)
		w.h.ServeHTTP(to, r)
	}
	begun.Add(8)
	for range 8 {
		all.Go(func() { asks(t.Context(), vi, &stuck{httptest.NewRecorder(), begun, let}) })
	}
	begun.Wait()
	gone, cancel := context.WithCancel(t.Context())
	cancel() // it does not wait for a turn
	ninth := httptest.NewRecorder()
	asks(gone, vi, ninth)
	others := httptest.NewRecorder()
	if asks(t.Context(), bob, others); others.Code != http.StatusOK {
		t.Errorf("another user gets %d", others.Code)
	}
	close(let)
	all.Wait()
	if ninth.Code != http.StatusTooManyRequests {
		t.Errorf("a ninth gets %d while eight are not read", ninth.Code)
	}
	again := httptest.NewRecorder()
	if asks(t.Context(), vi, again); again.Code != http.StatusOK {
		t.Errorf("after them %d", again.Code)
	}
}
