package httpblob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// flaky serves a store and breaks connections at random: before a request is handled, within its content, within the
// response, or after the work but before the response.
type flaky struct {
	http.Handler
	mu     *sync.Mutex // guards faults and the fields below
	chance *rand.Rand
	faults map[string]int
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	kind, at := "", 1+f.chance.IntN(300_000)
	if f.chance.IntN(3) == 0 {
		kind = []string{"away", "in the content", "in the answer", "lost answer", "busy"}[f.chance.IntN(5)]
		f.faults[kind]++
	}
	f.mu.Unlock()
	switch kind {
	case "away":
		panic(http.ErrAbortHandler)
	case "busy":
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	case "in the content":
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, int64(at)), torn{}))
	case "in the answer":
		w = &cutting{ResponseWriter: w, left: at}
	case "lost answer":
		f.Handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	f.Handler.ServeHTTP(w, r)
}

// torn is a body that ends like a broken connection.
type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func newFolder(t *testing.T) *folderblob.Store {
	t.Helper()
	f, err := folderblob.New(fast.Dir(t))
	must.Do(t, err)
	return f
}

// Over a network that breaks every third request, nothing is lost or torn: every way to write and read returns what
// was written.
func TestBucket_LosesNothingOnAFlakyNetwork(t *testing.T) {
	t.Parallel()
	h := handler(newFolder(t))
	var mu sync.Mutex
	faults := map[string]int{}
	var seeds sync.WaitGroup
	one := func(seed uint64) {
		f := &flaky{Handler: routes(func(*http.Request) httpblob.Handler { return h }), mu: &mu,
			chance: rand.New(rand.NewPCG(seed, 1)), faults: faults}
		server := httptest.NewServer(f)
		d := bucket(server.URL)
		b := gocloud.NewBucket(d)
		contents := map[string][]byte{}
		var later folderblob.Later
		for i, size := range []int{0, 1, 70_000, 1 << 20, 3 << 20} {
			key := fmt.Sprintf("%d/%d", seed, i)
			contents[key] = make([]byte, size)
			for j := range contents[key] {
				contents[key][j] = byte(j * (i + 3) >> 3)
			}
			opts := later.Options(gocloud.WriterOptions{ContentType: "x/y"})
			if err := b.Upload(t.Context(), key, bytes.NewReader(contents[key]), opts); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		if err := later.Sync(t.Context()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for key, want := range contents {
			got, err := b.ReadAll(t.Context(), key)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("seed %d: %s of %d bytes: read %d, %v", seed, key, len(want), len(got), err)
			}
		}
		server.Close()
	}
	for seed := range uint64(lane.Pick(4, 16)) {
		seeds.Go(func() { one(seed) })
	}
	seeds.Wait()
	if len(faults) < 5 {
		t.Errorf("too few faults to say anything: %v", faults)
	}
}

// Content generated while it is sent arrives whole whatever breaks, and is refused if it changed on the way.
func TestStream_ResumesAfterABreak(t *testing.T) {
	t.Parallel()
	content := make([]byte, 2<<20)
	for i := range content {
		content[i] = byte(i >> 5)
	}
	var tag atomic.Value
	tag.Store("first")
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := httpblob.Stream(w, r, "x/y", tag.Load().(string), func(offset int64) (uint32, error) {
			rest := content[offset:]
			for len(rest) > 0 {
				n, err := w.Write(rest[:min(len(rest), 60_000)])
				if err != nil {
					return 0, err
				}
				rest = rest[n:]
			}
			return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)), nil
		})
		if err != nil {
			http.Error(w, err.Error(), httpblob.Status(err))
			return
		}
	})
	f := &flaky{Handler: serve, mu: new(sync.Mutex), chance: rand.New(rand.NewPCG(2, 2)), faults: map[string]int{}}
	server := httptest.NewServer(f)
	defer server.Close()
	torn := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.faults["in the answer"] > 1
	}
	for n := 0; n < lane.Pick(8, 30) || !torn(); n++ {
		r, err := bucket(server.URL).Fetch(t.Context(), "/work")
		must.Do(t, err)
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	r, err := bucket(server.URL).Fetch(t.Context(), "/work")
	must.Do(t, err)
	tag.Store("second")
	server.CloseClientConnections()
	if _, err := io.ReadAll(r); err != nil && !errors.Is(err, httpblob.ErrChanged) {
		t.Errorf("%v", err)
	}
	_ = r.Close()
	damaged := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = httpblob.Stream(w, r, "x/y", "t", func(int64) (uint32, error) { _, err := w.Write([]byte("x")); return 1, err })
	}))
	defer damaged.Close()
	r, err = bucket(damaged.URL).Fetch(t.Context(), "/work")
	must.Do(t, err)
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a content with another sum was taken")
	}
}

// answers is a fake network for virtual time.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// The client waits for an unreachable server as long as the bucket's patience, unless a response says that waiting is
// useless.
func TestBucket_WaitsForAnUnreachableServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, away := time.Now(), 40*time.Second
		status := http.StatusNoContent
		tries := 0
		b := httpblob.NewBucket("http://scrimp", &http.Client{Transport: answers(func(r *http.Request) (*http.Response, error) {
			tries++
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			if time.Since(begin) < away {
				return nil, errors.New("connection refused")
			}
			return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
		})}, func() string { return "" })
		if err := gocloud.NewBucket(b).WriteAll(t.Context(), "k", []byte("x"), nil); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited < away || waited > away+6*time.Second || tries > 30 {
			t.Errorf("%d tries in %v", tries, waited)
		}
		begin, away = time.Now(), time.Hour
		if err := b.Delete(t.Context(), "k"); err == nil || time.Since(begin) > httpblob.Patience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		for s, want := range map[int]error{http.StatusGone: httpblob.ErrOver, http.StatusUnauthorized: httpblob.ErrOver,
			http.StatusForbidden: httpblob.ErrOwn, http.StatusInsufficientStorage: httpblob.ErrRoom} {
			begin, away, status, tries = time.Now(), 0, s, 0
			if err := b.Delete(t.Context(), "k"); !errors.Is(err, want) || tries != 1 {
				t.Errorf("status %d: %v after %d tries", s, err, tries)
			}
		}
	})
}

// The client gives up a connection on which nothing moves, and repeats the call.
func TestBucket_RetriesOnASilentConnection(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if tries.Add(1) == 1 {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	b := bucket(server.URL)
	b.Stall = 50 * time.Millisecond
	if err := b.Delete(t.Context(), "k"); err != nil || tries.Load() < 2 {
		t.Errorf("%v after %d tries", err, tries.Load())
	}
}

// Blobs that were not durable when the server's machine restarted do not count as durable, and of many clients that
// create a key only if absent, one wins.
func TestBucket_DetectsARestartedServerAndCreatesOnce(t *testing.T) {
	t.Parallel()
	h := handler(newFolder(t))
	server := httptest.NewServer(routes(func(*http.Request) httpblob.Handler { return h }))
	defer server.Close()
	r, err := http.Post(server.URL+"/blobs/sync", "", bytes.NewReader([]byte(`{"boot":"another","keys":[]}`)))
	if err != nil || r.StatusCode != http.StatusConflict {
		t.Errorf("%v, %v", r, err)
	}
	_ = r.Body.Close()
	b := gocloud.NewBucket(bucket(server.URL))
	won := make([]bool, 16)
	var all sync.WaitGroup
	for i := range won {
		all.Go(func() {
			err := b.WriteAll(context.Background(), "once", fmt.Append(nil, i), &gocloud.WriterOptions{IfNotExist: true})
			won[i] = err == nil
			if err != nil && gcerrors.Code(err) != gcerrors.FailedPrecondition {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := b.ReadAll(t.Context(), "once")
	if n := slices.Index(won, true); err != nil || n < 0 || slices.Contains(won[n+1:], true) || string(got) != fmt.Sprint(n) {
		t.Errorf("won %v, and it holds %q, %v", won, got, err)
	}
}
