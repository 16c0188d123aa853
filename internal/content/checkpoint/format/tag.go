package format

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
)

// mostTags is how many parts a manifest has at most whose tags are in it, 2 TiB: with more it would be too long.
const mostTags = 1 << 18

// tagLength is how many characters a tag has: 16 bytes in base64.
const tagLength = 22

// TagOf is the tag of a part's content: GMAC (AES-128 in Galois mode over data that is not encrypted) with the first
// half of the content's SHA-256 as its key, so that no content has a tag that another part's fits. Content that is
// damaged by chance passes with 2^19 in 2^128 (blocks of a part over what a tag can be). It is told from SHA-256 by
// one thing only: who knows the sum could make another content with the same tag. Who may write parts may write
// manifests too, and needs not. It takes a fifth of the time of SHA-256.
func TagOf(sum [sha256.Size]byte, content []byte) string {
	block, err := aes.NewCipher(sum[:16])
	if err != nil {
		panic("AES-128 takes no key of 16 bytes")
	}
	mac, err := cipher.NewGCM(block)
	if err != nil {
		panic("GCM takes no AES-128")
	}
	tag := mac.Seal(nil, make([]byte, mac.NonceSize()), nil, content)
	return base64.RawStdEncoding.EncodeToString(tag)
}

// Untagged is files without tags, where the parts are too many.
func Untagged(files []File) []File {
	n := 0
	for _, f := range files {
		n += len(f.Parts)
	}
	if n <= mostTags {
		return files
	}
	plain := make([]File, len(files))
	for i, f := range files {
		parts := make([]Part, 0, len(f.Parts))
		for _, p := range f.Parts {
			p.Tag = ""
			parts = append(parts, p)
		}
		if plain[i] = f; len(parts) > 0 {
			plain[i].Parts = parts
		}
	}
	return plain
}
