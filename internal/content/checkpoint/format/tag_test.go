package format

import (
	"crypto/aes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"testing"

	"scrimp/internal/test/lane"
)

// plainTag is TagOf written from the definition of GMAC: polynomials over two elements, whose first bit is the
// coefficient of x^0, times H modulo x^128 + x^7 + x^2 + x + 1.
func plainTag(sum [sha256.Size]byte, content []byte) string {
	block, _ := aes.NewCipher(sum[:16])
	var h, first [16]byte
	block.Encrypt(h[:], h[:])
	first[15] = 1
	block.Encrypt(first[:], first[:])
	data := append(append([]byte{}, content...), make([]byte, (16-len(content)%16)%16)...)
	data = binary.BigEndian.AppendUint64(data, uint64(len(content))*8)
	data = append(data, make([]byte, 8)...)
	// Reversed, a block is a number whose bit n is the coefficient of x^n.
	number := func(b []byte) *big.Int {
		v := new(big.Int)
		for n := range 128 {
			v.SetBit(v, n, uint(b[n/8]>>(7-n%8)&1))
		}
		return v
	}
	modulus := new(big.Int).SetBit(big.NewInt(0b10000111), 128, 1)
	y, by := new(big.Int), number(h[:])
	for ; len(data) > 0; data = data[16:] {
		y.Xor(y, number(data[:16]))
		product := new(big.Int)
		for n := range 128 {
			if y.Bit(n) == 1 {
				product.Xor(product, new(big.Int).Lsh(by, uint(n)))
			}
		}
		for n := product.BitLen() - 1; n >= 128; n-- {
			if product.Bit(n) == 1 {
				product.Xor(product, new(big.Int).Lsh(modulus, uint(n-128)))
			}
		}
		y = product
	}
	for n := range 128 {
		first[n/8] ^= byte(y.Bit(n)) << (7 - n%8)
	}
	return base64.RawStdEncoding.EncodeToString(first[:])
}

// A tag follows the definition of GMAC, and content that differs in one bit or in length has another tag.
func TestTagOf_IsGMACAndFindsDamage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for size := range 130 {
		if edge := size%16 < 2 || size%16 == 15; !edge && lane.Pick(0, 1) == 0 {
			continue
		}
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(r.Uint32())
		}
		sum := sha256.Sum256(content)
		tag := TagOf(sum, content)
		if plain := plainTag(sum, content); tag != plain || len(tag) != tagLength {
			t.Fatalf("%d bytes: tag %s, not %s", size, tag, plain)
		}
		p := Part{Sum: hex.EncodeToString(sum[:]), Size: int64(size), Tag: tag}
		if !p.Holds(content) || p.Holds(append(content, 0)) {
			t.Errorf("%d bytes: what was published is refused, or more than that taken", size)
		}
		for bit := range size * 8 {
			content[bit/8] ^= 1 << (bit % 8)
			if p.Holds(content) {
				t.Errorf("%d bytes with bit %d flipped are taken", size, bit)
			}
			content[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// A manifest contains tags only while it stays below the size limit of manifests.
func TestUntagged_DropsTooManyTags(t *testing.T) {
	t.Parallel()
	p := Part{Sum: hex.EncodeToString(make([]byte, sha256.Size)), Size: PartSize, Home: "999999-999999-9999-9999999999",
		Tag: TagOf([sha256.Size]byte{}, nil)}
	for n, want := range map[int]string{maxTags: p.Tag, maxTags + 1: ""} {
		f := File{Path: "f", Parts: make([]Part, n)}
		for i := range f.Parts {
			f.Parts[i] = p
		}
		files := Untagged([]File{{Path: "a"}, f})
		if files[1].Parts[n-1].Tag != want || files[0].Parts != nil || f.Parts[0].Tag != p.Tag {
			t.Errorf("%d parts: tag %q", n, files[1].Parts[n-1].Tag)
		}
		if data, err := Seal(Manifest{Files: files}); err != nil || n == maxTags && len(data) > MostBytes {
			t.Errorf("%d parts: %d bytes, %v", n, len(data), err)
		}
	}
}
