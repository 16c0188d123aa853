//go:build !local

package datastream

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/content/blob"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/must"
)

// BenchmarkView_RateS3 is BenchmarkView_Rate with a bucket.
func BenchmarkView_RateS3(b *testing.B) {
	address, _ := blobtest.S3(b)
	host, query, _ := strings.Cut(address, "?")
	store, err := blob.Open(b.Context(), address)
	must.Do(b, err)
	for i := range shards {
		must.Do(b, store.WriteAll(b.Context(), fmt.Sprintf("corpus/%02d.tar", i), pattern(i, shardSize), nil))
	}
	must.Do(b, store.Close())
	rate(b, func() datacache.Source {
		src, err := datacache.OpenSource(b.Context(), host+"/corpus?"+query, "")
		must.Do(b, err)
		return src
	})
}
