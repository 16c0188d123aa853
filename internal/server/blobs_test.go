package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// blob requests a blob with the token of an attempt's agent.
func (w *world) blob(method, path, attempt, body string, head ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, "/v1/agent"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.gate.Tickets.For(auth.AttemptTicket, attempt))
	if method == http.MethodPut {
		r.Header.Set(api.BlobSum, sumOf(body))
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	return rec
}

func sumOf(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

func keyOf(key string) string { return "/blobs?key=" + url.QueryEscape(key) }

// listedIn lists the server's store by path.
func (w *world) listedIn() (names []string) {
	root := filepath.Join(w.opts.Dir, "blobs")
	_ = filepath.WalkDir(root, func(at string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, at)
			names = append(names, rel)
		}
		return nil
	})
	return names
}

// An agent's token reads and writes only keys with its own job's prefix, whatever the path.
func TestBlobs_AgentReachesItsOwnJobOnly(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	mine, other := w.rent("a"), w.rent("b")
	w.take(mine)
	w.take(other)
	if rec := w.blob("PUT", keyOf("jobs/b/x"), other, "secret"); rec.Code != http.StatusNoContent {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.MkdirAll(w.opts.Dir+"/blobs/jobs/a/deep", 0o700),
		os.Symlink(outside, w.opts.Dir+"/blobs/jobs/a/link"), os.Symlink(w.opts.Dir, w.opts.Dir+"/blobs/jobs/a/deep/data"))
	must.Do(t, err)
	for _, key := range []string{"jobs/b/x", "jobs/a/../b/x", "jobs/a/./../b/x", "/jobs/b/x", "jobs/ab/x", "jobs/a", "jobs/",
		"..", "../token", "jobs/a/..", "jobs/a/../../../token", "jobs/a//../b/x", "jobs%2Fb%2Fx",
		`jobs/a/..\b`, outside, "jobs/a/link", "jobs/a/deep/data/token", "jobs/a/deep/data", "file://" + outside} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			path := keyOf(key)
			rec := w.blob(method, path, mine, "written")
			if rec.Code != http.StatusForbidden && rec.Code != http.StatusNotFound ||
				strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("%s %q: %d %s", method, key, rec.Code, rec.Body)
			}
		}
		if rec := w.blob("GET", "/blobs/list?prefix="+url.QueryEscape(key), mine, ""); rec.Code == http.StatusOK &&
			!strings.HasPrefix(key, "jobs/a/") {
			t.Errorf("list %q: %s", key, rec.Body)
		}
		if rec := w.blob("POST", "/blobs/sync", mine, fmt.Sprintf(`{"boot":%q,"keys":[%q]}`, boot(w, mine), key)); rec.Code <
			400 {
			t.Errorf("sync %q: %d", key, rec.Code)
		}
	}
	for _, raw := range []string{"jobs%2Fa%2F%2e%2e%2Fb%2Fx", "jobs/a/..%2fb/x", "jobs/b/x&key=jobs/a/x", "%2fetc%2fpasswd",
		"jobs/b%00/x"} {
		if rec := w.blob("GET", "/blobs?key="+raw, mine, ""); rec.Code != http.StatusForbidden {
			t.Errorf("get %s: %d %s", raw, rec.Code, rec.Body)
		}
	}
	if b, err := os.ReadFile(outside); string(b) != "secret" {
		t.Errorf("outside now holds %q, %v", b, err)
	}
	if rec := w.blob("GET", keyOf("jobs/b/x"), other, ""); rec.Body.String() != "secret" {
		t.Errorf("the other job's blob: %d %q", rec.Code, rec.Body)
	}
	for _, rec := range []*httptest.ResponseRecorder{w.blob("GET", "/blobs/list?prefix=jobs/a/", mine, ""),
		w.blob("GET", "/work?offset=-1", mine, ""), w.blob("GET", keyOf("jobs/a/none"), mine, "")} {
		if strings.Contains(rec.Body.String(), w.opts.Dir) || strings.Contains(rec.Body.String(), "outside") {
			t.Errorf("it says where the data folder is: %s", rec.Body)
		}
	}
}

func boot(w *world, attempt string) string {
	return w.blob("PUT", keyOf("jobs/a/boot"), attempt, "x").Header().Get(api.BlobBoot)
}

// An incomplete upload leaves nothing, and neither does one whose attempt ends before the last byte.
func TestUpload_DiscardsPartialBody(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	attempt := w.rent("a")
	a := w.agentOf(t, w.listens(t, "tcp"), attempt).Store()
	key := keyOf("jobs/a/k")
	if rec := w.blob("PUT", key, attempt, "content", api.BlobSum, "00000000"); rec.Code != http.StatusUnprocessableEntity {
		t.Errorf("another sum: %d %s", rec.Code, rec.Body)
	}
	for name, head := range map[string][]string{"no sum": {api.BlobSum, ""},
		"a condition that nobody knows": {"If-None-Match", `"x"`}} {
		if rec := w.blob("PUT", key, attempt, "content", head...); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	if rec := w.blob("PUT", key+"&durable=never", attempt, "content"); rec.Code != http.StatusBadRequest {
		t.Errorf("a durability that nobody knows: %d", rec.Code)
	}
	for _, size := range []int{10, 3 << 20} { // written at its end, and as it arrives
		ctx, cancel := context.WithCancel(t.Context())
		to, err := gocloud.NewBucket(a).NewWriter(ctx, "jobs/a/k", &gocloud.WriterOptions{ContentType: "x/y"})
		must.Do(t, err)
		_, _ = to.Write(bytes.Repeat([]byte("x"), size)) // it may get the end already
		cancel()
		if to.Close() == nil {
			t.Errorf("%d bytes were kept that were broken off", size)
		}
	}
	if names := w.listedIn(); len(names) > 0 {
		t.Errorf("the store holds %v", names)
	}

	from, in := io.Pipe()
	r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/agent"+key, from)
	r.Header.Set("Authorization", "Bearer "+w.gate.Tickets.For(auth.AttemptTicket, attempt))
	r.Header.Set(api.BlobSum, sumOf("begun and ended"))
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { defer close(done); w.h.ServeHTTP(rec, r) }()
	if _, err := in.Write([]byte("begun and ")); err != nil { // the attempt is live, and its upload in progress
		t.Fatal(err)
	}
	w.must("POST", "/v1/jobs/a/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { _, live := m.Attempt(attempt); return !live })
	_, err := in.Write([]byte("ended"))
	must.Do(t, errors.Join(err, in.Close()))
	<-done
	if rec.Code != http.StatusGone || len(w.listedIn()) > 0 {
		t.Errorf("after the end: %d %s, and the store holds %v", rec.Code, rec.Body, w.listedIn())
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if rec := w.blob(method, key, attempt, "late"); rec.Code != http.StatusGone {
			t.Errorf("%s after the end: %d", method, rec.Code)
		}
	}
	for _, ask := range []string{"GET /blobs/list?prefix=jobs/a/", "POST /blobs/sync", "GET /work"} {
		method, path, _ := strings.Cut(ask, " ")
		if rec := w.blob(method, path, attempt, ""); rec.Code != http.StatusGone {
			t.Errorf("%s after the end: %d", ask, rec.Code)
		}
	}
}

// If the server's disk is nearly full, it refuses uploads, and the agent learns why.
func TestBlobs_AreRefusedOnFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	attempt := w.rent("a")
	store := gocloud.NewBucket(w.agentOf(t, w.listens(t, "unix"), attempt).Store())
	w.free.Store(disk.LogReserve - 1)
	err := store.WriteAll(t.Context(), "jobs/a/k", []byte("x"), nil)
	if gcerrors.Code(err) != gcerrors.ResourceExhausted || !strings.Contains(err.Error(), "nearly full") {
		t.Errorf("%v (%v)", err, gcerrors.Code(err))
	}
	if rec := w.blob("PUT", keyOf("jobs/a/k"), attempt, "x"); rec.Code != http.StatusInsufficientStorage {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if names := w.listedIn(); len(names) > 0 {
		t.Errorf("the store holds %v", names)
	}
}

// Agents that send slowly, and all at once, delay nobody else.
func TestSlowSenders_DoNotDelayOthers(t *testing.T) {
	t.Parallel()
	sendSlowly(t, 10, 8)
}

// A hundred agents that send slowly, and all at once, use little memory.
func TestSlowSenders_UseLittleMemory(t *testing.T) {
	lane.Nightly(t, "it measures memory")
	const agents, each = 100, 8
	if grown := sendSlowly(t, agents, each); grown > agents*each*128<<10 {
		t.Errorf("%d senders take %d MiB", agents*each, grown>>20)
	}
}

// sendSlowly has each of the agents send endless uploads and fails the test if they delay others. It returns the
// growth of the heap.
func sendSlowly(t *testing.T, agents, each int) (grown int64) {
	t.Helper()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Running = agents })
	address := strings.TrimPrefix(w.listens(t, "tcp"), "http://")
	attempts := make([]string, agents)
	for i := range attempts {
		attempts[i] = w.rent(fmt.Sprint("j", i))
	}
	before := heap()
	for i := range agents * each {
		c, err := net.Dial("tcp", address)
		must.Do(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "PUT /v1/agent/blobs?key=jobs/j%d/k%d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
			"Scrimp-Crc32c: 00000000\r\nContent-Length: %d\r\n\r\n%s", i%agents, i, w.gate.Tickets.For(auth.AttemptTicket, attempts[i%agents]),
			1<<30, strings.Repeat("x", 100_000))
		must.Do(t, err)
	}
	eventually.True(t, "all contents are on their way", func() bool {
		end, err := w.moves.Open("another", 1, agents*each)
		if err == nil {
			end()
		}
		return err != nil
	})
	grown = heap() - before
	w.must("GET", "/v1/jobs", nil, nil)
	if names := w.listedIn(); len(names) > 0 {
		t.Errorf("what is on its way is to be seen: %v", names)
	}
	// An agent with too many transfers must wait, and blocks nobody else.
	const agentMoves, allMoves = 16, 1024
	for i := range agentMoves {
		end, err := w.moves.Open(attempts[0], agentMoves, allMoves)
		if err == nil {
			t.Cleanup(end)
		} else if i < agentMoves-each {
			t.Fatal(err)
		}
	}
	if rec := w.blob("PUT", keyOf("jobs/j0/more"), attempts[0], "x"); rec.Code != http.StatusTooManyRequests ||
		rec.Header().Get("Retry-After") == "" {
		t.Errorf("too much at once: %d %s", rec.Code, rec.Body)
	}
	if rec := w.blob("PUT", keyOf("jobs/j1/more"), attempts[1], "x"); rec.Code != http.StatusNoContent {
		t.Errorf("another agent meanwhile: %d %s", rec.Code, rec.Body)
	}
	return grown
}

// heap returns the heap in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
