package datastream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// gated is a source whose reads stop after some bytes of each file until it is opened.
type gated struct {
	datacache.Source
	after  int64
	open   chan struct{} // closed: all bytes come
	broken atomic.Bool
	opens  atomic.Int64
}

func (g *gated) Open(ctx context.Context, f datacache.File, offset int64) (io.ReadCloser, error) {
	g.opens.Add(1)
	r, err := g.Source.Open(ctx, f, offset)
	return &gatedReader{r, g, ctx, offset}, err
}

type gatedReader struct {
	io.ReadCloser
	g   *gated
	ctx context.Context
	at  int64
}

func (r *gatedReader) Read(p []byte) (int, error) {
	if r.at < r.g.after {
		p = p[:min(int64(len(p)), r.g.after-r.at)]
	} else if r.at < r.g.after+window {
		select {
		case <-r.g.open:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
		if r.g.broken.Load() {
			return 0, datacache.ErrChanged
		}
	}
	n, err := r.ReadCloser.Read(p)
	r.at += int64(n)
	return n, err
}

// rig is a folder of files, a cache, and a way to serve them.
type rig struct {
	t     *testing.T
	dir   string
	cache *datacache.Cache
	bytes map[string][]byte
}

func newRig(t *testing.T, limits datacache.Limits, files map[string][]byte) *rig {
	t.Helper()
	r := &rig{t: t, dir: fast.Dir(t), bytes: files}
	for name, b := range files {
		to := filepath.Join(r.dir, "in", name)
		must.Do(t, os.MkdirAll(filepath.Dir(to), 0o700))
		must.Do(t, os.WriteFile(to, b, 0o600))
	}
	var err error
	r.cache, err = datacache.Open(filepath.Join(r.dir, "cache"), "boot", limits, time.Now)
	must.Do(t, err)
	t.Cleanup(func() { _ = r.cache.Close() })
	return r
}

func (r *rig) serve(g *gated) *View {
	r.t.Helper()
	src, err := datacache.OpenFolder(filepath.Join(r.dir, "in"))
	must.Do(r.t, err)
	if g.Source = src; g.open == nil {
		g.open = make(chan struct{})
		close(g.open)
	}
	v, err := Serve(r.t.Context(), r.cache, g, nil, slog.New(slog.DiscardHandler))
	must.Do(r.t, err)
	return v
}

// get reads a range of a file; an empty range is all of it.
func get(t *testing.T, url, bounds string) (status int, text []byte, err error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must.Do(t, err)
	if bounds != "" {
		q.Header.Set("Range", "bytes="+bounds)
	}
	a, err := http.DefaultClient.Do(q)
	must.Do(t, err)
	defer func() { _ = a.Body.Close() }()
	text, err = io.ReadAll(a.Body)
	return a.StatusCode, text, err
}

func init() { pause = 0 }

var ample = datacache.Limits{Bytes: 1 << 40}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((i*31 + i/251 + seed) % 253)
	}
	return b
}

// A program reads the listing, whole files and ranges, and the next program on the machine finds them in the cache.
func TestView_ServesFilesAndRanges(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a.tar": pattern(1, 3<<20), "sub/b c.tar": pattern(2, 1000), "empty": nil}
	r := newRig(t, ample, files)
	var total int64
	for round := range 2 {
		v := r.serve(&gated{})
		_, text, err := get(t, v.URL, "")
		must.Do(t, err)
		var list []listed
		must.Do(t, json.Unmarshal(text, &list))
		if len(list) != 3 || list[0].Name != "a.tar" || list[2].Name != "sub/b c.tar" || list[2].Bytes != 1000 {
			t.Fatalf("the listing is %s", text)
		}
		total = 0
		for _, f := range list {
			total += f.Bytes
			if status, got, err := get(t, f.URL, ""); status != http.StatusOK || err != nil || !bytes.Equal(got, files[f.Name]) {
				t.Errorf("%s: %d, %d bytes, %v", f.Name, status, len(got), err)
			}
		}
		status, got, err := get(t, list[0].URL, "1000000-1000099")
		if status != http.StatusPartialContent || err != nil || !bytes.Equal(got, files["a.tar"][1000000:1000100]) {
			t.Errorf("a range: %d, %d bytes, %v", status, len(got), err)
		}
		if status, _, _ := get(t, v.URL+"none", ""); status != http.StatusNotFound {
			t.Errorf("a missing file: %d", status)
		}
		base, _, _ := strings.Cut(v.URL, "//")
		if status, _, _ := get(t, base+"//"+strings.Split(v.URL, "/")[2]+"/guess/a.tar", ""); status != http.StatusNotFound {
			t.Errorf("without the token: %d", status)
		}
		read, err := v.Close()
		want := datacache.Read{Files: 3, Bytes: total, Fetched: total, Requests: read.Requests}
		if round == 1 {
			want.Hits, want.HitBytes, want.Fetched = 3, total, 0
		}
		if err != nil || read != want {
			t.Errorf("round %d: it read %+v, %v, want %+v", round, read, err, want)
		}
	}
}

// The first bytes are served while the rest has not arrived, the files after the opened one are fetched meanwhile, and a
// range far ahead comes straight from the source.
func TestView_ServesWhatHasArrived(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	for i := range 3 {
		files[fmt.Sprintf("%d.tar", i)] = pattern(i, 3*window)
	}
	r := newRig(t, ample, files)
	g := &gated{after: 100_000, open: make(chan struct{})}
	v := r.serve(g)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.URL+"0.tar", nil)
	must.Do(t, err)
	a, err := http.DefaultClient.Do(q)
	must.Do(t, err)
	defer func() { _ = a.Body.Close() }()
	first := make([]byte, 100_000)
	if _, err := io.ReadFull(a.Body, first); err != nil || !bytes.Equal(first, files["0.tar"][:100_000]) {
		t.Fatalf("the first bytes: %v", err)
	}
	if _, foot, err := get(t, v.URL+"1.tar", "-8"); err != nil || !bytes.Equal(foot, files["1.tar"][3*window-8:]) {
		t.Errorf("the footer: %q, %v", foot, err)
	}
	close(g.open)
	rest, err := io.ReadAll(a.Body)
	if err != nil || !bytes.Equal(rest, files["0.tar"][100_000:]) {
		t.Errorf("the rest has %d bytes, %v", len(rest), err)
	}
	for name := range files { // the last was never opened
		if _, got, err := get(t, v.URL+name, ""); err != nil || !bytes.Equal(got, files[name]) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	read, err := v.Close()
	if err != nil || read.Bytes != 9*window || read.Fetched < 9*window+8 || g.opens.Load() != 4 {
		t.Errorf("it read %+v in %d requests, %v", read, g.opens.Load(), err)
	}
}

// The answer for a file that changes while it is read is never complete.
func TestView_BreaksOffAChangedFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, ample, map[string][]byte{"a": pattern(1, 300_000)})
	g := &gated{after: 100_000, open: make(chan struct{})}
	v := r.serve(g)
	g.broken.Store(true)
	close(g.open)
	for range 2 {
		if status, got, err := get(t, v.URL+"a", ""); status == http.StatusOK && err == nil {
			t.Errorf("a complete answer with %d bytes", len(got))
		}
	}
	if read, _ := v.Close(); read.Files != 0 {
		t.Errorf("it counts %+v", read)
	}
}

// Without room in the cache the program reads from the source.
func TestView_WorksWithoutRoomInTheCache(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a": pattern(1, 300_000), "b": pattern(2, 1000)}
	r := newRig(t, datacache.Limits{Bytes: 10_000}, files)
	v := r.serve(&gated{})
	for name := range files {
		if _, got, err := get(t, v.URL+name, ""); err != nil || !bytes.Equal(got, files[name]) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if read, err := v.Close(); err != nil || read.Files != 2 || read.Bytes != 301_000 || read.Fetched != 301_000 {
		t.Errorf("it read %+v, %v", read, err)
	}
}

// flaky is a source whose connections break after some bytes; after most of them it cannot be reached.
type flaky struct {
	datacache.Source
	after int64
	most  int64
	opens atomic.Int64
}

var errBroken = errors.New("the connection broke")

func (f *flaky) Open(ctx context.Context, file datacache.File, offset int64) (io.ReadCloser, error) {
	if f.opens.Add(1) > f.most {
		return nil, errBroken
	}
	r, err := f.Source.Open(ctx, file, offset)
	return &flakyReader{r, f.after}, err
}

type flakyReader struct {
	io.ReadCloser
	left int64
}

func (r *flakyReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errBroken
	}
	n, err := r.ReadCloser.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// A direct read goes on where its connection broke. It ends once several tries in a row have brought nothing, and then
// its answer is not complete.
func TestView_ContinuesADirectRead(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a": pattern(1, 300_000)}
	for _, c := range []struct{ after, most, opens int64 }{
		{300_000, 100, 1}, {299_999, 100, 2}, {7_000, 100, 43}, {7_000, 10, 10 + tries - 1}, {0, 100, tries},
	} {
		r := newRig(t, datacache.Limits{Bytes: 10_000}, files)
		src, err := datacache.OpenFolder(filepath.Join(r.dir, "in"))
		must.Do(t, err)
		f := &flaky{Source: src, after: c.after, most: c.most}
		v, err := Serve(t.Context(), r.cache, f, nil, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		_, got, err := get(t, v.URL+"a", "")
		if whole := c.after*c.most >= 300_000; whole != (err == nil) || !bytes.HasPrefix(files["a"], got) ||
			whole && len(got) != 300_000 {
			t.Errorf("%+v: %d bytes, %v", c, len(got), err)
		}
		if n := f.opens.Load(); n != c.opens {
			t.Errorf("%+v: it opened the source %d times", c, n)
		}
		if read, closeErr := v.Close(); closeErr != nil || err == nil && read.Fetched != 300_000 {
			t.Errorf("%+v: it read %+v, %v", c, read, closeErr)
		}
	}
}

// An input without files ends before the program starts.
func TestServe_RefusesAnEmptyInput(t *testing.T) {
	t.Parallel()
	r := newRig(t, ample, nil)
	must.Do(t, os.Mkdir(filepath.Join(r.dir, "in"), 0o700))
	src, err := datacache.OpenFolder(filepath.Join(r.dir, "in"))
	must.Do(t, err)
	if _, err := Serve(t.Context(), r.cache, src, nil, slog.New(slog.DiscardHandler)); !errors.Is(err, datacache.ErrInput) {
		t.Errorf("it says %v", err)
	}
}
