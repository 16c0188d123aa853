package blockhash

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// However a stream is cut into blocks, its hashes are those of all its bytes.
func TestStream_HashesAllBytesInOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, length := range []int{0, 1, Size - 1, Size, Size + 1, 9*Size + 17} {
		text := make([]byte, length)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		sum, old := sha256.New(), md5.New()
		s := New(sum, old)
		early := min(length, random.IntN(1000))
		_, _ = s.Write(text[:early])
		for rest := text[early:]; len(rest) > 0; {
			b := s.Block(int64(len(rest)))
			n := copy(b[:1+random.IntN(len(b))], rest)
			s.Put(b, n)
			rest = rest[n:]
		}
		s.Close()
		want, wantOld := sha256.Sum256(text), md5.Sum(text)
		if !bytes.Equal(sum.Sum(nil), want[:]) || !bytes.Equal(old.Sum(nil), wantOld[:]) {
			t.Errorf("%d bytes: the hashes are %x and %x", length, sum.Sum(nil), old.Sum(nil))
		}
	}
}

// A block whose read failed is put back empty, so that the next try finds memory.
func TestStream_TakesEmptyBlocks(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	s := New(sum)
	for range 3 * Blocks {
		s.Put(s.Block(Size), 0)
	}
	b := s.Block(1)
	s.Put(b, copy(b, "x"))
	s.Close()
	if want := sha256.Sum256([]byte("x")); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("the hash is %x", sum.Sum(nil))
	}
}
