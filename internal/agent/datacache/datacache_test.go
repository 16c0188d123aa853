package datacache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/fast"
)

func init() { pause = 0 }

// memory is a Source in memory that counts what it sends, and breaks as a test wants.
type memory struct {
	mu    sync.Mutex
	files map[string]string
	sent  atomic.Int64
	opens atomic.Int64
	// breaks returns how many bytes of the n-th reading arrive before it breaks; -1: all.
	breaks func(n int64) int
	wait   chan struct{} // readings wait until it is closed; nil: they do not
}

var errBroken = errors.New("connection reset")

func (m *memory) Address() string { return "memory://" }
func (m *memory) Requests() int64 { return m.opens.Load() }
func (m *memory) Close() error    { return nil }

func (m *memory) set(name, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = text
}

func (m *memory) List(context.Context) (list []File, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, text := range m.files {
		list = append(list, File{Name: name, Bytes: int64(len(text)), Version: text})
	}
	return list, nil
}

func (m *memory) Open(ctx context.Context, f File, offset int64) (io.ReadCloser, error) {
	n := m.opens.Add(1)
	if m.wait != nil {
		select {
		case <-m.wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.files[f.Name]
	if text != f.Version {
		return nil, ErrChanged
	}
	r := io.Reader(strings.NewReader(text[offset:]))
	if m.breaks != nil {
		if k := m.breaks(n); k >= 0 {
			r = io.MultiReader(io.LimitReader(r, int64(k)), broken{})
		}
	}
	return io.NopCloser(counting{r, &m.sent}), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

type counting struct {
	io.Reader
	n *atomic.Int64
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// plenty is a disk with room for all tests.
func plenty(string) (free, whole int64, err error) { return 1 << 40, 1 << 41, nil }

var ample = Limits{Bytes: 1 << 40, disk: plenty}

func opened(t *testing.T, dir, boot string, l Limits) *Cache {
	t.Helper()
	c, err := Open(dir, boot, l, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closed(t *testing.T, c *Cache) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// holds fails unless a folder has exactly the files.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the program finds %.300v, want %.300v", got, want)
	}
}

func corpus() *memory {
	return &memory{files: map[string]string{"a": "alpha", "sub/b": strings.Repeat("b", 3000), "empty": ""}}
}

func TestBring_ReadsEachContentOnce(t *testing.T) {
	dir := fast.Dir(t)
	c := opened(t, filepath.Join(dir, "cache"), "boot", ample)
	src := corpus()
	first, h, err := c.Bring(t.Context(), src, nil, filepath.Join(dir, "1"))
	if err != nil || first.Bytes != 3005 || first.Fetched != 3005 || first.Hits != 0 || first.Files != 3 {
		t.Fatalf("%+v, %v", first, err)
	}
	h.Release()
	closed(t, c)
	c = opened(t, filepath.Join(dir, "cache"), "boot", ample) // another agent
	second, _, err := c.Bring(t.Context(), src, nil, filepath.Join(dir, "2"))
	if err != nil || second.Fetched != 0 || second.HitBytes != 3005 || second.Hits != 3 || src.sent.Load() != 3005 {
		t.Errorf("%+v, %v; the source sent %d", second, err, src.sent.Load())
	}
	holds(t, filepath.Join(dir, "2"), src.files)
	src.set("a", "omega")
	third, _, err := c.Bring(t.Context(), src, nil, filepath.Join(dir, "3"))
	if err != nil || third.Fetched != 5 || third.HitBytes != 3000 {
		t.Errorf("one file has changed: %+v, %v", third, err)
	}
	holds(t, filepath.Join(dir, "3"), src.files)
}

// Whatever damages a file in the cache, no program finds it damaged: neither changes in place, nor a file that a crash
// of the machine has torn.
func TestBring_NeverUsesADamagedFile(t *testing.T) {
	damages := map[string]func(path string) error{
		"cut":  func(path string) error { return os.Truncate(path, 10) },
		"gone": os.Remove,
		"turned with its times kept": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			b := bytes.Repeat([]byte("X"), int(info.Size()))
			return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600), os.Chmod(path, 0o444),
				os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"a link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path)) },
	}
	for name, damage := range damages {
		for _, boot := range []string{"boot", "later", ""} {
			dir := fast.Dir(t)
			c := opened(t, dir+"/cache", "boot", ample)
			src := corpus()
			_, h, err := c.Bring(t.Context(), src, nil, dir+"/1")
			if err != nil {
				t.Fatal(err)
			}
			h.Release()
			if boot != "boot" {
				closed(t, c)
			}
			path, err := filepath.EvalSymlinks(dir + "/1/sub/b")
			if err == nil {
				err = damage(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if boot != "boot" {
				c = opened(t, dir+"/cache", boot, ample)
			}
			r, _, err := c.Bring(t.Context(), src, nil, dir+"/2")
			if err != nil || r.Fetched != 3000 || r.HitBytes != 5 {
				t.Errorf("%s, boot %q: %+v, %v", name, boot, r, err)
			}
			holds(t, dir+"/2", src.files)
		}
	}
}

// A line of the index that a crash has torn, or that names another content, makes no program find wrong files.
func TestOpen_SkipsATornIndex(t *testing.T) {
	dir := fast.Dir(t)
	c := opened(t, dir+"/cache", "boot", ample)
	src := corpus()
	if _, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	index := dir + "/cache/" + indexName
	whole, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(whole); cut += 37 {
		if err := os.WriteFile(index, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		c := opened(t, dir+"/cache", "boot", ample)
		if _, _, err := c.Bring(t.Context(), src, nil, dir+"/2"); err != nil {
			t.Fatal(err)
		}
		holds(t, dir+"/2", src.files)
		closed(t, c)
	}
}

// A reading that breaks, or an agent that is killed, loses nothing that has arrived.
func TestBring_ContinuesWhereItBroke(t *testing.T) {
	dir := fast.Dir(t)
	text := strings.Repeat("0123456789", 5000)
	src := &memory{files: map[string]string{"big": text}, breaks: func(int64) int { return 7001 }}
	c := opened(t, dir+"/cache", "boot", ample)
	if r, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); err != nil || r.Fetched != int64(len(text)) || r.Requests != 8 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, dir+"/1", src.files)

	src.set("big", text+"!")
	src.breaks = func(n int64) int { return map[bool]int{true: 20_000, false: 0}[n == 9] }
	r, _, err := c.Bring(t.Context(), src, nil, dir+"/2")
	if !errors.Is(err, errBroken) || r.Fetched != 20_000 {
		t.Fatalf("a store that never answers again: %+v, %v", r, err)
	}
	closed(t, c) // and is killed
	src.breaks = nil
	c = opened(t, dir+"/cache", "boot", ample)
	if r, _, err = c.Bring(t.Context(), src, nil, dir+"/2"); err != nil || r.Fetched != int64(len(text))+1-20_000 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, dir+"/2", src.files)
}

func TestBring_DropsPartsOfAnEarlierBoot(t *testing.T) {
	dir := fast.Dir(t)
	src := &memory{files: map[string]string{"x": "correct"}, breaks: func(int64) int { return 0 }}
	c := opened(t, dir+"/cache", "boot", ample)
	if _, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	list, _ := src.List(t.Context())
	if err := os.WriteFile(c.partial(sourceOf(src, list[0])), []byte("wron\x00"), 0o600); err != nil {
		t.Fatal(err) // as a file system may leave it
	}
	closed(t, c)
	src.breaks = nil
	c = opened(t, dir+"/cache", "later", ample)
	if _, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); err != nil {
		t.Fatal(err)
	}
	holds(t, dir+"/1", src.files)
}

func TestBring_ProgramsShareOneFetch(t *testing.T) {
	dir := fast.Dir(t)
	src := corpus()
	src.wait = make(chan struct{})
	c := opened(t, dir+"/cache", "boot", ample)
	var wg sync.WaitGroup
	var fetched, hits atomic.Int64
	for i := range 5 {
		wg.Go(func() {
			r, _, err := c.Bring(t.Context(), src, nil, fmt.Sprint(dir, "/", i))
			if err != nil {
				t.Error(err)
			}
			fetched.Add(r.Fetched)
			hits.Add(r.HitBytes)
		})
	}
	close(src.wait)
	wg.Wait()
	if src.sent.Load() != 3005 || fetched.Load() != 3005 || hits.Load() != 4*3005 {
		t.Errorf("the source sent %d, the programs fetched %d and found %d", src.sent.Load(), fetched.Load(), hits.Load())
	}
	for i := range 5 {
		holds(t, fmt.Sprint(dir, "/", i), src.files)
	}
}

// If the program that fetches is stopped, the one that waits for its file fetches it.
func TestBring_AnotherProgramTakesOver(t *testing.T) {
	dir := fast.Dir(t)
	src := corpus()
	src.wait = make(chan struct{})
	c := opened(t, dir+"/cache", "boot", ample)
	first, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := c.Bring(first, src, nil, dir+"/1"); !errors.Is(err, context.Canceled) {
			t.Errorf("the stopped program: %v", err)
		}
	})
	eventually.True(t, "the first program reads", func() bool { return src.opens.Load() == 3 })
	wg.Go(func() {
		if _, _, err := c.Bring(t.Context(), src, nil, dir+"/2"); err != nil {
			t.Error(err)
		}
	})
	stop()
	close(src.wait)
	wg.Wait()
	holds(t, dir+"/2", src.files)
}

// Over generated inputs and programs, the cache stays below its bound, and every file of a running program stays.
func TestBring_NeverEvictsWhatAProgramReads(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := fast.Dir(t)
		const most = 10_000
		c := opened(t, dir+"/cache", "boot", Limits{Bytes: most, disk: plenty})
		type program struct {
			dir   string
			files map[string]string
			hold  *Hold
		}
		var running []program
		for n := range 40 {
			if len(running) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(running))
				running[i].hold.Release()
				running = append(running[:i], running[i+1:]...)
			}
			src := &memory{files: map[string]string{}}
			for i := range 1 + rng.IntN(4) {
				text := strings.Repeat(string(rune('a'+rng.IntN(20))), 1+rng.IntN(3)*1000)
				src.files[fmt.Sprint("f", i)] = text
			}
			p := program{dir: fmt.Sprint(dir, "/", n), files: src.files}
			_, hold, err := c.Bring(t.Context(), src, nil, p.dir)
			p.hold = hold
			if err != nil && !errors.Is(err, ErrRoom) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err == nil {
				running = append(running, p)
			}
			var size int64
			err = filepath.WalkDir(dir+"/cache/"+objectsName, func(_ string, d fs.DirEntry, err error) error {
				if info, bad := d.Info(); err == nil && bad == nil && !d.IsDir() {
					size += info.Size()
				}
				return err
			})
			if err != nil || size > most {
				t.Fatalf("seed %d: the cache has %d bytes, %v", seed, size, err)
			}
			for _, p := range running {
				holds(t, p.dir, p.files)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestBring_SaysWhenTheDiskIsFull(t *testing.T) {
	dir := fast.Dir(t)
	free := int64(4000)
	l := Limits{Bytes: 1 << 30, Reserve: 0.1, disk: func(string) (int64, int64, error) { return free, 10_000, nil }}
	c := opened(t, dir+"/cache", "boot", l)
	src := corpus()
	r, h, err := c.Bring(t.Context(), src, nil, dir+"/1") // 1,000 bytes must stay free
	if !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "SCRIMP_CACHE") || src.opens.Load() != 0 ||
		r.Files != 0 || r.Bytes != 0 {
		t.Errorf("%+v, %v, after %d readings", r, err, src.opens.Load())
	}
	h.Release()
	free = 4005
	if _, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); err != nil {
		t.Error(err)
	}
}

// fullReader fails as a disk does that fills up.
type fullReader struct{ *memory }

func (f fullReader) Open(context.Context, File, int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("al"), failing{syscall.ENOSPC})), nil
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

func TestBring_FreesTheDiskThatItFilled(t *testing.T) {
	dir := fast.Dir(t)
	c := opened(t, dir+"/cache", "boot", ample)
	src := &memory{files: map[string]string{"a": "alpha"}}
	if _, _, err := c.Bring(t.Context(), fullReader{src}, nil, dir+"/1"); !errors.Is(err, ErrRoom) {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(filepath.Dir(c.partial("x")))
	if err != nil || len(left) > 0 {
		t.Errorf("%v stay, %v", left, err)
	}
}

// A file that changes while it is read reaches no program half old and half new.
func TestBring_ReadsAChangedFileAnew(t *testing.T) {
	dir, from := fast.Dir(t), fast.Dir(t)
	path := filepath.Join(from, "x")
	if err := os.WriteFile(path, bytes.Repeat([]byte("1"), 3*copySize), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := OpenFolder(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	changed := false
	c := opened(t, dir+"/cache", "boot", ample)
	_, _, err = c.Bring(t.Context(), &hooked{src, func() {
		if !changed {
			changed = true
			if err := os.WriteFile(path, bytes.Repeat([]byte("2"), 3*copySize), 0o600); err != nil {
				t.Error(err)
			}
		}
	}}, nil, dir+"/1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/1/x")
	if err != nil || !bytes.Equal(b, bytes.Repeat([]byte("2"), 3*copySize)) {
		t.Errorf("%d bytes that begin with %.4q, %v", len(b), b, err)
	}
}

// What an attempt that failed has brought is what reached the machine, so that no more came from caches than was brought.
func TestBring_CountsWhatReachedTheMachine(t *testing.T) {
	dir, from := fast.Dir(t), fast.Dir(t)
	path := filepath.Join(from, "x")
	if err := errors.Join(os.WriteFile(path, []byte("12345"), 0o600), os.WriteFile(from+"/a", []byte("123"), 0o600)); err != nil {
		t.Fatal(err)
	}
	src, err := OpenFolder(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	c := opened(t, dir+"/cache", "boot", ample)
	for range 2 { // the second time the cache has what stays the same
		r, _, err := c.Bring(t.Context(), &hooked{src, func() {
			if err := os.WriteFile(path, []byte("54321"), 0o600); err != nil {
				t.Error(err)
			}
		}}, nil, dir+"/1")
		if !errors.Is(err, ErrChanged) || strings.Count(err.Error(), ErrChanged.Error()) != 1 {
			t.Errorf("%v", err)
		}
		if r.HitBytes > r.Bytes || r.Hits > r.Files || r.Files > 1 || r.Bytes > 3 {
			t.Errorf("%+v", r)
		}
	}
}

// hooked calls a function after the first read of a file.
type hooked struct {
	Source
	after func()
}

func (h *hooked) Open(ctx context.Context, f File, offset int64) (io.ReadCloser, error) {
	r, err := h.Source.Open(ctx, f, offset)
	return &hookedReader{r, h.after}, err
}

type hookedReader struct {
	io.ReadCloser
	after func()
}

func (h *hookedReader) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	h.after()
	return n, err
}

func TestOpen_RefusesAFolderInUse(t *testing.T) {
	dir := fast.Dir(t)
	c := opened(t, dir, "boot", ample)
	if _, err := Open(dir, "boot", ample, time.Now); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	closed(t, c)
	closed(t, opened(t, dir, "boot", ample))
}

func TestBring_RefusesNamesThatFilesCannotHave(t *testing.T) {
	for _, names := range [][]string{{"../x"}, {"/x"}, {"a//b"}, {"a", "a/b"}, {"a/./b"}, {"x\x00"}} {
		src := &memory{files: map[string]string{}}
		for _, n := range names {
			src.files[n] = "x"
		}
		dir := fast.Dir(t)
		c := opened(t, dir+"/cache", "boot", ample)
		if _, _, err := c.Bring(t.Context(), src, nil, dir+"/1"); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v", names, err)
		}
	}
}

func TestOpenFolder_TakesAFileOrAFolder(t *testing.T) {
	dir, from := fast.Dir(t), fast.Dir(t)
	want := map[string]string{"x": "1", "sub/y": "2"}
	for name, text := range want {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := opened(t, dir+"/cache", "boot", ample)
	bring := func(address, to string) (Read, error) {
		src, err := OpenSource(t.Context(), address, "")
		if err != nil {
			return Read{}, err
		}
		defer func() { _ = src.Close() }()
		r, _, err := c.Bring(t.Context(), src, nil, to)
		return r, err
	}
	if _, err := bring("file://"+from, dir+"/1"); err != nil {
		t.Fatal(err)
	}
	holds(t, dir+"/1", want)
	if r, err := bring("file://"+from+"/sub/y", dir+"/2"); err != nil || r.Fetched > 1 {
		t.Errorf("%+v, %v", r, err)
	}
	holds(t, dir+"/2", map[string]string{"y": "2"})
	if err := errors.Join(os.Symlink("/etc/hostname", from+"/out"), os.MkdirAll(dir+"/empty/sub", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"file://" + dir + "/empty", "file://" + from, "file:///no/such/folder", "file://host/x", "hf://x/y", "s3://b?prefix=x",
		"file://" + from + "/sub#y", "s3://b/c#d"} {
		if r, err := bring(wrong, dir+"/3"); err == nil {
			t.Errorf("%s: %+v", wrong, r)
		}
	}
}

// A link that leaves the folder is refused with where it leads: snapshots of model caches hold such links.
func TestOpenFolder_NamesLinksThatLeadOut(t *testing.T) {
	for to, want := range map[string]string{
		"../blobs/a":  "the link model leads out of the folder, to ../blobs/a: bring a folder that contains both",
		"/no/such":    "the link model leads out of the folder, to /no/such",
		"nothing":     "the link model leads to nothing, which does not exist: remove it",
		"/etc/passwd": "the link model leads out of the folder, to /etc/passwd",
	} {
		from := fast.Dir(t)
		if err := errors.Join(os.MkdirAll(from+"/snap", 0o700), os.Symlink(to, from+"/snap/model")); err != nil {
			t.Fatal(err)
		}
		src, err := OpenFolder(from + "/snap")
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.List(t.Context())
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
		_ = src.Close()
	}
}

func TestReadLimits(t *testing.T) {
	for text, want := range map[string]Limits{"": {Share: 0.5}, "0.2": {Share: 0.2}, "1": {Share: 1},
		"200GB": {Share: 0.5, Bytes: 200e9}, "0": {Share: 0}} {
		if got, err := ReadLimits(text, 0); err != nil || got.Bytes != want.Bytes || got.Share != want.Share {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"200", "-1", "NaN", "much", "0GB"} {
		if got, err := ReadLimits(text, 0); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
