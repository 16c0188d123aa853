//go:build !local

package blob_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var absent = &gocloud.WriterOptions{IfNotExist: true}

// eachCloud runs a test on a real server of each kind of object store.
func eachCloud(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("S3", func(t *testing.T) {
		address, _ := blobtest.S3(t)
		test(t, address)
	})
	t.Run("GCS", func(t *testing.T) { test(t, blobtest.GCS(t)) })
	t.Run("Azure", func(t *testing.T) { test(t, blobtest.Azure(t)) })
}

// A bucket on a real server writes, lists and deletes below its prefix. If many clients create one key only if
// absent, exactly one wins, each time.
func TestBuckets(t *testing.T) {
	lane.Component(t, "objects")
	eachCloud(t, func(t *testing.T, address string) {
		b, err := blob.Open(t.Context(), address+"&prefix=team/a")
		must.Do(t, err)
		defer b.Close()
		const writers, rounds = 16, 20
		for round := range rounds {
			var won atomic.Int64
			var winner atomic.Value
			var wg sync.WaitGroup
			key := fmt.Sprint("race", round)
			for n := range writers {
				wg.Go(func() {
					data := fmt.Appendf(nil, "%2d", n)
					err := b.WriteAll(t.Context(), key, data, absent)
					switch {
					case err == nil:
						won.Add(1)
						winner.Store(string(data))
					case !blob.Taken(err):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if won.Load() != 1 {
				t.Fatalf("round %d: %d creations won", round, won.Load())
			}
			if held, err := b.ReadAll(t.Context(), key); err != nil || string(held) != winner.Load() {
				t.Errorf("round %d: held %q, %v; %q won", round, held, err, winner.Load())
			}
		}
		o, err := b.List(nil).Next(t.Context())
		if err != nil || o.Key != "race0" || o.Size != 2 {
			t.Errorf("listed %+v, %v", o, err)
		}
		if err := b.Delete(t.Context(), "race0"); err != nil {
			t.Error(err)
		}
		if _, err := b.ReadAll(t.Context(), "race0"); !blob.Missing(err) {
			t.Errorf("read what was deleted: %v", err)
		}
		if err := b.Delete(t.Context(), "race0"); !blob.Missing(err) {
			t.Errorf("delete what was deleted: %v", err)
		}
		_, err = blob.Open(t.Context(), strings.Replace(address, "scrimp-test", "no-such-bucket", 1))
		if err == nil || !strings.Contains(err.Error(), "does not exist: create it") || !strings.Contains(err.Error(), "no-such-bucket") {
			t.Errorf("open a bucket that is not there: %v", err)
		}
	})
}
