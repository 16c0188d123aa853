package workblob

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir"
)

// An agent whose folder is being uploaded must ask again; one that would wait behind others fetches the folder from
// the server.
func TestAsk_DoesNotWaitBehindOthers(t *testing.T) {
	t.Parallel()
	data, folder := t.TempDir(), t.TempDir()
	folders := workdir.New(data, disk.Of(data))
	err := os.WriteFile(filepath.Join(folder, "data"), []byte("some bytes"), 0o600)
	for _, job := range []string{"a", "b"} {
		if err = errors.Join(err, folders.Copy(job, folder, data)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := New(folders, nil, nil)
		begin := time.Now()
		if at, err := b.Ask(t.Context(), "a", "s3://ckpt"); !errors.Is(err, ErrServer) || time.Since(begin) != answers {
			t.Errorf("%+v, %v after %v", at, err, time.Since(begin))
		}
		close((<-b.queue).begun)
		if at, err := b.Ask(t.Context(), "a", "s3://ckpt"); err != nil || !at.Wait || at.SHA256 != "" {
			t.Errorf("%+v, %v", at, err)
		}
		for range inLine {
			b.queue <- nil
		}
		if at, err := b.Ask(t.Context(), "b", "s3://ckpt"); !errors.Is(err, ErrServer) || time.Since(begin) != 2*answers {
			t.Errorf("%+v, %v after %v", at, err, time.Since(begin))
		}
	})
}
