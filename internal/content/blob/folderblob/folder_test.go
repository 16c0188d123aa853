package folderblob_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/drivertest"
	"gocloud.dev/gcerrors"
	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/test/fast"
)

type harness struct{ dir string }

func (h harness) MakeDriver(context.Context) (driver.Bucket, error) { return folderblob.New(h.dir) }
func (h harness) HTTPClient() *http.Client                          { return nil }
func (h harness) Close()                                            {}

func (h harness) MakeDriverForNonexistentBucket(context.Context) (driver.Bucket, error) {
	return nil, nil // NewFolder creates a missing folder
}

// A folder passes gocloud's conformance suite, except for content types and metadata, which it does not store.
func TestFolder_PassesTheConformanceSuite(t *testing.T) {
	t.Parallel()
	drivertest.RunConformanceTests(t, func(_ context.Context, t *testing.T) (drivertest.Harness, error) {
		name := t.Name()
		if strings.Contains(name, "ContentType") || strings.HasSuffix(name, "TestAttributes") || strings.Contains(name, "TestMetadata/") || strings.HasSuffix(name, "TestCopy/Works") {
			t.Skip("a folder keeps no content type and no metadata")
		}
		return harness{fast.Dir(t)}, nil
	}, nil)
}

func openFolder(t testing.TB, dir string) *gocloud.Bucket {
	t.Helper()
	b, err := blob.Open(t.Context(), "file://"+dir)
	must.Do(t, err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

var absent = &gocloud.WriterOptions{IfNotExist: true}

// files returns every file below dir, including temporary ones.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, rel)
		}
		return err
	})
	must.Do(t, err)
	return found
}

// If many writers in separate processes create one key at once, only if absent, exactly one wins, and the blob is the
// winner's.
func TestFolder_LetsExactlyOneWriterCreate(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("BLOB_TEST_CREATE"); dir != "" {
		b := openFolder(t, dir)
		won := 0
		for i := range 50 {
			err := b.WriteAll(t.Context(), fmt.Sprintf("race/%d", i), []byte(os.Getenv("BLOB_TEST_WHO")), absent)
			switch {
			case err == nil:
				won++
			case gcerrors.Code(err) != gcerrors.FailedPrecondition:
				t.Fatal(err)
			}
		}
		fmt.Printf("won=%d\n", won)
		return
	}
	dir := fast.Dir(t)
	outs := make([]string, 4)
	var wg sync.WaitGroup
	for who := range outs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFolder_LetsExactlyOneWriterCreate$")
			cmd.Env = append(os.Environ(), "BLOB_TEST_CREATE="+dir, fmt.Sprintf("BLOB_TEST_WHO=%d", who))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v\n%s", who, err, out)
			}
			outs[who] = string(out)
		})
	}
	wg.Wait()
	wins := make([]int, len(outs))
	total := 0
	for who, out := range outs {
		line, _, _ := strings.Cut(out, "\n")
		if _, err := fmt.Sscanf(line, "won=%d", &wins[who]); err != nil {
			t.Fatalf("process %d printed %q", who, out)
		}
		total += wins[who]
	}
	if total != 50 {
		t.Errorf("%d creations succeeded for 50 keys", total)
	}
	b := openFolder(t, dir)
	for i := range 50 {
		data, err := b.ReadAll(t.Context(), fmt.Sprintf("race/%d", i))
		must.Do(t, err)
		wins[data[0]-'0']--
	}
	for who, left := range wins {
		if left != 0 {
			t.Errorf("process %d was told of %d more wins than it has blobs", who, left)
		}
	}
}

// A process killed during a write leaves nothing visible in a listing, and the blob that it was replacing stays whole.
func TestFolder_ShowsNothingOfAKilledWriter(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("BLOB_TEST_KILL"); dir != "" {
		b := openFolder(t, dir)
		w, err := b.NewWriter(t.Context(), "a/key", &gocloud.WriterOptions{ContentType: "x/y"})
		if err == nil {
			_, err = w.Write(bytes.Repeat([]byte("new"), 1<<20))
		}
		must.Do(t, err)
		fmt.Println("written")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	dir := fast.Dir(t)
	b := openFolder(t, dir)
	must.Do(t, b.WriteAll(t.Context(), "a/key", []byte("old"), nil))
	cmd := exec.Command(os.Args[0], "-test.run=^TestFolder_ShowsNothingOfAKilledWriter$")
	cmd.Env = append(os.Environ(), "BLOB_TEST_KILL="+dir)
	out, err := cmd.Output()
	if err == nil || string(out) != "written\n" {
		t.Fatalf("the child was to be killed after it wrote: %v, %q", err, out)
	}
	data, err := b.ReadAll(t.Context(), "a/key")
	if err != nil || string(data) != "old" {
		t.Errorf("read %q, %v; want old", data, err)
	}
	if o, err := b.List(nil).Next(t.Context()); err != nil || o.Key != "a/key" || o.Size != 3 {
		t.Errorf("listed %+v, %v", o, err)
	}
}

// Keys cannot leave the folder, and each has its own file.
func TestFolder_KeepsKeysInside(t *testing.T) {
	t.Parallel()
	top := fast.Dir(t)
	dir := filepath.Join(top, "store")
	b := openFolder(t, dir)
	keys := []string{"../up", "d/..", ".", "/abs", "b//b", "b/./b", "a/../../b", "trail/", "%", "%2E", "%252E", ".%aside-1", "nul\x01", "ä/ö", "c:\\d"}
	for _, k := range keys {
		if err := b.WriteAll(t.Context(), k, []byte(k), nil); err != nil {
			t.Fatalf("%q: %v", k, err)
		}
	}
	for _, k := range keys {
		if data, err := b.ReadAll(t.Context(), k); err != nil || string(data) != k {
			t.Errorf("%q holds %q, %v", k, data, err)
		}
	}
	if got := files(t, top); len(got) != len(keys) {
		t.Errorf("%d files for %d keys: %q", len(got), len(keys), got)
	}
	for _, f := range files(t, top) {
		if !strings.HasPrefix(f, "store/") {
			t.Errorf("file %s lies outside", f)
		}
	}
	err := b.WriteAll(t.Context(), strings.Repeat("x", 300), nil, nil)
	if gcerrors.Code(err) != gcerrors.InvalidArgument {
		t.Errorf("a key that is too long: %v", err)
	}
}

// Foreign files are not blobs and do no harm.
func TestFolder_IgnoresForeignFiles(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	b := openFolder(t, dir)
	for _, name := range []string{"%zz", "a%2fb", "line\nbreak", "%61", "\xff"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	must.Do(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	objects, _, err := b.ListPage(t.Context(), gocloud.FirstPageToken, 10, &gocloud.ListOptions{Delimiter: "/"})
	if err != nil || len(objects) != 0 {
		t.Errorf("listed %v, %v", objects, err)
	}
}

// A listing with any page size, prefix and delimiter equals a plain one over a map's keys.
func TestFolder_ListsLikeAMap(t *testing.T) {
	t.Parallel()
	fast := fast.Dir(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(fast, "list")
		must.Do(rt, err)
		defer os.RemoveAll(dir)
		folder, err := folderblob.New(dir)
		must.Do(rt, err)
		b := gocloud.NewBucket(folder)
		defer b.Close()
		held := map[string]bool{}
		for _, k := range rapid.SliceOfN(rapid.StringMatching(`[a%./\-]{1,5}`), 0, 12).Draw(rt, "keys") {
			if err := b.WriteAll(t.Context(), k, nil, nil); err == nil { // a and a/b cannot both exist
				held[k] = true
			}
		}
		for k := range held {
			if rapid.Bool().Draw(rt, "delete") {
				must.Do(rt, b.Delete(t.Context(), k))
				delete(held, k)
			}
		}
		prefix := rapid.StringMatching(`[a%./\-]{0,3}`).Draw(rt, "prefix")
		delimiter := rapid.SampledFrom([]string{"", "/", "a", "//"}).Draw(rt, "delimiter")
		size := rapid.IntRange(1, 4).Draw(rt, "page")

		var want []string
		for _, k := range slices.Sorted(maps.Keys(held)) {
			rest, ok := strings.CutPrefix(k, prefix)
			if !ok {
				continue
			}
			if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
				k = prefix + rest[:i+len(delimiter)]
			}
			if len(want) == 0 || want[len(want)-1] != k {
				want = append(want, k)
			}
		}
		var got []string
		var token []byte
		for {
			p, err := folder.ListPaged(t.Context(), &driver.ListOptions{Prefix: prefix, Delimiter: delimiter, PageSize: size, PageToken: token})
			must.Do(rt, err)
			for _, o := range p.Objects {
				got = append(got, o.Key)
			}
			if token = p.NextPageToken; token == nil {
				break
			}
			if len(p.Objects) != size {
				rt.Fatalf("a page of %d that is not the last has %d", size, len(p.Objects))
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("prefix %q delimiter %q: listed %q, want %q", prefix, delimiter, got, want)
		}
	})
}

// Concurrent writes and deletes in one folder never fail, although deletes remove empty folders.
func TestFolder_AllowsConcurrentWritesAndDeletes(t *testing.T) {
	t.Parallel()
	dir := fast.Dir(t)
	var wg sync.WaitGroup
	for n := range 4 {
		b := openFolder(t, dir)
		r := rand.New(rand.NewPCG(1, uint64(n)))
		wg.Go(func() {
			for range 50 {
				k := fmt.Sprintf("x/y/%d-%d", n, r.IntN(3))
				if err := b.WriteAll(t.Context(), k, []byte(k), nil); err != nil {
					t.Error(err)
					return
				}
				if err := b.Delete(t.Context(), k); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
