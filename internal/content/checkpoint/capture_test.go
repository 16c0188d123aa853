package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/blob/memblob"

	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

func capture(t testing.TB, c *folder.Capturer) *folder.Capture {
	t.Helper()
	got, err := c.Capture(t.Context())
	must.Do(t, err)
	t.Cleanup(func() {
		if err := got.Discard(); err != nil {
			t.Error(err)
		}
	})
	return got
}

// A capture contains what the folder contained, although the program then replaces and removes its files, and costs
// no copy.
func TestCapture_SurvivesReplacedFiles(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	dir := filepath.Join(fast.Dir(t), "c")
	put(t, dir, "model", "before it is replaced")
	put(t, dir, "gone", "before it is removed")
	want := read(t, dir)
	c := capture(t, &folder.Capturer{Folder: confined.Folder{Path: dir}})
	if c.Copied != 0 || c.Size() != 41 {
		t.Errorf("copied %d of %d bytes", c.Copied, c.Size())
	}
	put(t, dir, "model.tmp", "after")
	for _, err := range []error{
		os.Rename(filepath.Join(dir, "model.tmp"), filepath.Join(dir, "model")),
		os.Remove(filepath.Join(dir, "gone")),
	} {
		must.Do(t, err)
	}
	w := claim(t, open(b), 1)
	if _, _, err := w.PublishCapture(t.Context(), c, format.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := restored(t, open(b)); !got.equal(want) {
		t.Errorf("differs:%s", want.diff(got))
	}
}

// A file that is overwritten in place after it was linked is never published torn. The next capture copies it, and
// the copy survives.
func TestCapture_LearnsWhichFilesAreOverwritten(t *testing.T) {
	t.Parallel()
	b := openFolder(t, fast.Dir(t))
	dir := filepath.Join(fast.Dir(t), "c")
	w := claim(t, open(b), 1)
	c := &folder.Capturer{Folder: confined.Folder{Path: dir}}
	put(t, dir, "model", "first")
	put(t, dir, "fixed", "never written again")
	one := capture(t, c)
	if one.Copied > 0 {
		t.Skip("skipped: files are not linked here")
	}
	put(t, dir, "model", "second")
	if _, _, err := w.PublishCapture(t.Context(), one, format.Meta{}); err == nil {
		_, got, _ := restored(t, open(b))
		if !strings.HasSuffix(got["model"], "first") {
			t.Fatalf("published %q", got["model"])
		}
	} else if !errors.Is(err, checkpoint.ErrChanged) {
		t.Fatal(err)
	}
	two := capture(t, c)
	if two.Copied != int64(len("second")) {
		t.Errorf("copied %d bytes", two.Copied)
	}
	put(t, dir, "model", "third")
	if _, _, err := w.PublishCapture(t.Context(), two, format.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := restored(t, open(b)); !strings.HasSuffix(got["model"], "second") {
		t.Errorf("published %q", got["model"])
	}
}

// A program that overwrites its files during the upload gets a checkpoint of one moment.
func TestPublish_CapturesAgainAfterAChange(t *testing.T) {
	t.Parallel()
	store := openFolder(t, fast.Dir(t))
	dir := filepath.Join(fast.Dir(t), "c")
	put(t, dir, "a", "old old old old")
	put(t, dir, "b", "old old old old")
	var once sync.Once
	b := hooked(t, store, func(op blobtest.Op) error {
		if op.Kind == "write" && strings.Contains(op.Key, "objects/") {
			once.Do(func() {
				put(t, dir, "a", "new new new new")
				put(t, dir, "b", "new new new new")
			})
		}
		return nil
	})
	w := claim(t, open(b), 1)
	publish(t, w, dir, 1)
	_, got, _ := restored(t, open(b))
	if a, b := got["a"][len(got["a"])-15:], got["b"][len(got["b"])-15:]; a != b {
		t.Errorf("published a mixture: %q and %q", a, b)
	}
	if names, _ := os.ReadDir(filepath.Dir(dir)); len(names) != 1 {
		t.Errorf("captures are left: %v", names)
	}
}

// A capture leaves out and names files that it cannot copy. If no file remains, there is no checkpoint.
func TestCapture_LeavesOutAndNamesWhatCannotBeCopied(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(fast.Dir(t), "c")
	if _, err := folder.Take(t.Context(), dir); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder that is missing: %v", err)
	}
	odd := map[string]string{"out": "/etc/passwd", "up": "../../up", "r\xe9": "state", "bytes": "r\xe9"}
	must.Do(t, os.MkdirAll(dir, 0o700))
	for name, target := range odd {
		must.Do(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	if c, err := folder.Take(t.Context(), dir); err == nil || !strings.Contains(err.Error(), `"r\xe9"`) {
		t.Errorf("nothing can be copied: %+v, %v", c, err)
	}
	put(t, dir, "state", "x")
	c, err := folder.Take(t.Context(), dir)
	must.Do(t, err)
	for _, says := range []string{`bytes, "r\xe9" (`, "not UTF-8", "out, up (it leads out of the folder"} {
		if !strings.Contains(c.Left(), says) {
			t.Errorf("left out: %s; it does not say %s", c.Left(), says)
		}
	}
	w := claim(t, open(memblob.OpenBucket(nil)), 1)
	m, _, err := w.PublishCapture(t.Context(), c, format.Meta{Job: "j1"})
	if err != nil || len(m.Files) != 1 || m.Files[0].Path != "state" {
		t.Errorf("published %+v, %v", m.Files, err)
	}
	must.Do(t, c.Discard())
	if names, _ := os.ReadDir(filepath.Dir(dir)); len(names) != 1 {
		t.Errorf("captures are left: %v", names)
	}
}

// A capture that fails halfway returns an error and leaves nothing.
func TestCapture_LeavesNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(fast.Dir(t), "c")
	put(t, dir, "f", "x")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := folder.Take(gone, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("its caller has gone: %v", err)
	}
	// A program that never rests: files come and go all the time.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(dir, fmt.Sprintf("n%d", n%50))
			_ = os.WriteFile(name, []byte(name), 0o600)
			_ = os.Remove(filepath.Join(dir, fmt.Sprintf("n%d", (n+25)%50)))
		}
	}()
	broken := 0
	for n := 0; n < 20 || broken == 0 && n < 10000; n++ {
		c, err := folder.Take(t.Context(), dir)
		switch {
		case err == nil:
			if err := c.Discard(); err != nil {
				t.Error(err)
			}
		case errors.Is(err, checkpoint.ErrChanged):
			broken++
		default:
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	if broken == 0 {
		t.Error("the test is void: no capture broke off")
	}
	if names, _ := os.ReadDir(filepath.Dir(dir)); len(names) != 1 {
		t.Errorf("captures are left: %v", names)
	}
}
