//go:build !local

package checkpoint_test

import (
	"fmt"
	"testing"

	"scrimp/internal/blob"
	"scrimp/internal/blob/blobtest"
)

// What holds for folders holds for a real S3 server.
func TestS3(t *testing.T) {
	address, _ := blobtest.S3(t)
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
