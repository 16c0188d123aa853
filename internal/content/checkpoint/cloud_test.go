//go:build !local

package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// The suite also passes on real servers of S3, Google Cloud Storage and Azure Blob.
func TestS3(t *testing.T) {
	lane.Component(t, "objects")
	address, _ := blobtest.S3(t)
	inBucket(t, address)
}

// Content that S3 itself reports as changed counts as damage, not as an unreachable store: the previous checkpoint is
// restored.
func TestRestore_SkipsADamagedManifestInS3(t *testing.T) {
	lane.Component(t, "objects")
	address, objects := blobtest.S3(t)
	b, err := blob.Open(t.Context(), address)
	must.Do(t, err)
	defer func() { _ = b.Close() }()
	s, dir := checkpoint.Open(b, "j/"), t.TempDir()
	w, err := s.Claim(t.Context(), 1, "j.1")
	must.Do(t, err)
	var newest string
	for step := int64(1); step <= 2; step++ {
		must.Do(t, os.WriteFile(filepath.Join(dir, "state"), []byte(fmt.Sprint(step)), 0o600))
		m, _, err := w.Publish(t.Context(), dir, format.Meta{Job: "j", Step: step})
		must.Do(t, err)
		newest = filepath.Join(objects, "j", "manifests", m.Name)
	}
	text, err := os.ReadFile(newest)
	must.Do(t, err)
	text[len(text)/2] ^= 1
	must.Do(t, os.WriteFile(newest, text, 0o600))
	if w, err = s.Claim(t.Context(), 2, "j.2"); err != nil {
		t.Fatal(err)
	}
	r, err := w.Restore(t.Context(), t.TempDir())
	if err != nil || r.Manifest == nil || r.Manifest.Step != 1 || len(r.Refused) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestGCS(t *testing.T) {
	lane.Component(t, "objects")
	inBucket(t, blobtest.GCS(t))
}

func TestAzure(t *testing.T) {
	lane.Component(t, "objects")
	inBucket(t, blobtest.Azure(t))
}

func inBucket(t *testing.T, address string) {
	for i, s := range suite {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			b, err := blob.Open(t.Context(), fmt.Sprintf("%s&prefix=case%d", address, i))
			must.Do(t, err)
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			s.test(t, b)
		})
	}
}
