package object

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/test/must"

	"gocloud.dev/blob/memblob"
)

// A part without a tag, or with a wrong tag, is checked by its hash.
func TestRestore_ChecksTheHashWhenATagIsMissingOrWrong(t *testing.T) {
	t.Parallel()
	b := memblob.OpenBucket(nil)
	defer b.Close()
	s := Open(b, "")
	content := []byte("what was published")
	sum := sha256.Sum256(content)
	p := format.Part{Sum: hex.EncodeToString(sum[:]), Size: int64(len(content)), Home: "h"}
	for _, tag := range []string{"", format.TagOf(sum, []byte("something else"))} {
		p.Tag = tag
		for _, held := range []string{string(content), "what was publisheD"} {
			must.Do(t, b.WriteAll(t.Context(), p.Key(), []byte(held), nil))
			err := s.readTagged(t.Context(), p, make([]byte, p.Size))
			if (err == nil) != (held == string(content)) {
				t.Errorf("tag %q, %q: %v", tag, held, err)
			}
		}
	}
}
