package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/format"
)

// The second of two attempts at one job starts from what the first has published.
func Example() {
	ctx := context.Background()
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Panic(err)
	}
	defer os.RemoveAll(top)
	bucket, err := blob.Open(ctx, "file://"+filepath.Join(top, "store"))
	if err != nil {
		log.Panic(err)
	}
	defer bucket.Close()
	store := checkpoint.Open(bucket, "jobs/j1")

	first := filepath.Join(top, "machine1", "ckpt")
	if err := os.MkdirAll(first, 0o755); err != nil {
		log.Panic(err)
	}
	if err := os.WriteFile(filepath.Join(first, "weights"), []byte("trained for 100 steps"), 0o600); err != nil {
		log.Panic(err)
	}
	w, err := store.Claim(ctx, 1, "j1.1")
	if err != nil {
		log.Panic(err)
	}
	m, stats, err := w.Publish(ctx, first, format.Meta{Job: "j1", Attempt: "j1.1", Step: 100})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("published", m.Name, "with", stats.Uploaded, "new bytes")

	second := filepath.Join(top, "machine2", "ckpt")
	w2, err := store.Claim(ctx, 2, "j1.2")
	if err != nil {
		log.Panic(err)
	}
	r, err := w2.Restore(ctx, second)
	if err != nil {
		log.Panic(err)
	}
	data, err := os.ReadFile(filepath.Join(second, "weights"))
	if err != nil {
		log.Panic(err)
	}
	fmt.Printf("restored %s at step %d: %s\n", r.Manifest.Name, r.Manifest.Step, data)

	_, _, err = w.Publish(ctx, first, format.Meta{Step: 101})
	fmt.Println("the first attempt:", err)
	// Output:
	// published 000001-000001 with 21 new bytes
	// restored 000001-000001 at step 100: trained for 100 steps
	// the first attempt: publish step 101 of j1.1: fenced: a newer attempt has the claim: claim 000002-000001 is newer than 000001-000001
}
