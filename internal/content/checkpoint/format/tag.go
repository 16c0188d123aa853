package format

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
)

// maxTags bounds the parts of a manifest with tags, 2 TiB: with more it would be too long.
const maxTags = 1 << 18

// tagLength is the number of characters of a tag: 16 bytes in base64.
const tagLength = 22

// TagOf returns the tag of a part's content: GMAC (AES-128 in Galois mode over unencrypted data) with the first half
// of the content's SHA-256 as its key, so that no tag fits another part's content. Accidental damage passes with a
// probability of 2^19 in 2^128 (the blocks of a part over the possible tags). Unlike SHA-256, GMAC lets somebody who
// knows the sum construct other content with the same tag; but whoever may write parts may write manifests, too, and
// has no need to. GMAC takes a fifth of the time of SHA-256.
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

// Untagged returns the files without tags if they have too many parts.
func Untagged(files []File) []File {
	n := 0
	for _, f := range files {
		n += len(f.Parts)
	}
	if n <= maxTags {
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
