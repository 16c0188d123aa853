//go:build local

package blob_test

import (
	"strings"
	"testing"

	"scrimp/internal/blob"
)

// The quick build says what it cannot do and how to get it.
func TestLocalBuildNamesTheOther(t *testing.T) {
	_, err := blob.Open(t.Context(), "s3://bucket")
	if err == nil || !strings.Contains(err.Error(), "built with the tag local: build with make build") {
		t.Error(err)
	}
}
