//go:build !local

package checkpoint_test

import (
	"fmt"
	"testing"

	"scrimp/internal/blob"
	"scrimp/internal/blob/blobtest"
)

// What holds for folders holds for real servers of S3, Google Cloud Storage and Azure Blob.
func TestS3(t *testing.T) {
	address, _ := blobtest.S3(t)
	inBucket(t, address)
}

func TestGCS(t *testing.T) { inBucket(t, blobtest.GCS(t)) }

func TestAzure(t *testing.T) { inBucket(t, blobtest.Azure(t)) }

func inBucket(t *testing.T, address string) {
	for i, s := range suite {
		t.Run(s.name, func(t *testing.T) {
			b, err := blob.Open(t.Context(), fmt.Sprintf("%s&prefix=case%d", address, i))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			s.test(t, b)
		})
	}
}
