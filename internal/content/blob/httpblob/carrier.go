package httpblob

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
)

// buffers carry contents. A sender that is slow holds one, so they are small; what is long
// and comes fast gets one of a few large ones, which take a fifth less of the processor.
var (
	buffers      = sync.Pool{New: func() any { return new([bufferSize]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeSize]byte) }}
	largeLeft    = make(chan struct{}, 64) // holds one for each large buffer in use: 16 MiB in all
)

const (
	bufferSize = 64 << 10
	largeSize  = 256 << 10
	longAfter  = 1 << 20 // bytes of a content after which it gets a large buffer
)

// carrier lends a buffer: a small one, and a large one where many bytes went through it.
type carrier struct {
	small *[bufferSize]byte
	large *[largeSize]byte // nil: it has none
	moved int64
}

func newCarrier() *carrier {
	small, _ := buffers.Get().(*[bufferSize]byte)
	return &carrier{small: small}
}

// buffer is what to read into next, after n bytes that were moved with the one before.
func (c *carrier) buffer(n int) []byte {
	if c.moved += int64(n); c.large == nil && c.moved >= longAfter {
		select {
		case largeLeft <- struct{}{}:
			c.large, _ = largeBuffers.Get().(*[largeSize]byte)
		default: // others have them
		}
	}
	if c.large != nil {
		return c.large[:]
	}
	return c.small[:]
}

// release gives back what was lent.
func (c *carrier) release() {
	buffers.Put(c.small)
	if c.large != nil {
		largeBuffers.Put(c.large)
		<-largeLeft
	}
}

// Nearby reports whether the server is on this machine.
func (b *Bucket) Nearby() bool {
	u, err := url.Parse(b.Base)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return b.Socket || err == nil && at.Unmap().IsLoopback()
}

// bySocket reports whether the caller came by a socket of this machine, on which Go sends a
// file in pieces of 32 KiB. Larger ones take a sixth less of the processor.
func bySocket(r *http.Request) bool {
	_, err := netip.ParseAddrPort(r.RemoteAddr)
	return err != nil // a socket has no such address
}

// carried answers in large pieces, through this process.
type carried struct{ http.ResponseWriter }

// ReadFrom implements io.ReaderFrom.
func (c carried) ReadFrom(from io.Reader) (sent int64, err error) {
	lent := newCarrier()
	defer lent.release()
	for n := 0; ; {
		buffer := lent.buffer(n)
		n, err = from.Read(buffer)
		if n > 0 {
			m, werr := c.Write(buffer[:n])
			if sent += int64(m); werr != nil {
				return sent, werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return sent, nil
		case err != nil:
			return sent, err
		}
	}
}

// Unwrap is for http.ResponseController.
func (c carried) Unwrap() http.ResponseWriter { return c.ResponseWriter }
