//go:build !local

package blob_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gocloud.dev/gcerrors"

	"scrimp/internal/blob"
	"scrimp/internal/blob/blobtest"
)

// A bucket on a real server writes, lists and deletes below its prefix, and of
// many who create one key only if it is absent exactly one wins.
func TestS3(t *testing.T) {
	address, _ := blobtest.S3(t)
	b, err := blob.Open(t.Context(), address+"&prefix=team/a")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var won atomic.Int64
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			err := b.WriteAll(t.Context(), "race", fmt.Append(nil, n), absent)
			switch {
			case err == nil:
				won.Add(1)
			case gcerrors.Code(err) != gcerrors.FailedPrecondition:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d creations won", won.Load())
	}
	o, err := b.List(nil).Next(t.Context())
	if err != nil || o.Key != "race" || o.Size != 1 {
		t.Errorf("listed %+v, %v", o, err)
	}
	if err := b.Delete(t.Context(), "race"); err != nil {
		t.Error(err)
	}
	if _, err := b.ReadAll(t.Context(), "race"); gcerrors.Code(err) != gcerrors.NotFound {
		t.Errorf("read what was deleted: %v", err)
	}
	_, err = blob.Open(t.Context(), strings.Replace(address, "scrimp-test", "no-such-bucket", 1))
	if err == nil || !strings.Contains(err.Error(), "no bucket no-such-bucket") {
		t.Errorf("open a bucket that is not there: %v", err)
	}
}
