//go:build local

package blob_test

import (
	"strings"
	"testing"

	"scrimp/internal/content/blob"
)

// The quick build says what it lacks and how to get it.
func TestOpen_LocalBuildNamesTheFullBuild(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"s3://bucket", "gs://bucket", "azblob://container?account=a"} {
		_, err := blob.Open(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "built with the tag local, without object stores: build with make build") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
