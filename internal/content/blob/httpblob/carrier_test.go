package httpblob

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
)

// Long and fast content gets a large buffer if one is free, otherwise a small one. All of it arrives, and every
// buffer is returned.
func TestCarrier_ReturnsItsBuffers(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * i >> 9)
	}
	want := crc32.Checksum(content, castagnoli)
	h := Handler{Room: func(int) error { return nil }}
	carry := func() (largest int) {
		var got bytes.Buffer
		widest := writerFunc(func(p []byte) (int, error) { largest = max(largest, len(p)); return got.Write(p) })
		if sum, err := h.copy(widest, bytes.NewReader(content)); err != nil || sum != want || !bytes.Equal(got.Bytes(), content) {
			t.Errorf("%d bytes with the sum %x, %v", got.Len(), sum, err)
		}
		w := httptest.NewRecorder()
		if n, err := (carried{w}).ReadFrom(bytes.NewReader(content)); err != nil || n != int64(len(content)) ||
			!bytes.Equal(w.Body.Bytes(), content) {
			t.Errorf("answered are %d bytes, %v", n, err)
		}
		return largest
	}
	if n := carry(); n != largeSize {
		t.Errorf("pieces of %d bytes at most, want %d", n, largeSize)
	}
	for range cap(largeLeft) {
		largeLeft <- struct{}{}
	}
	if n := carry(); n != bufferSize {
		t.Errorf("without a large buffer pieces of %d bytes at most, want %d", n, bufferSize)
	}
	for range cap(largeLeft) {
		<-largeLeft
	}
	torn := io.MultiReader(bytes.NewReader(content), iotest.ErrReader(errTorn))
	if n, err := (carried{httptest.NewRecorder()}).ReadFrom(torn); !errors.Is(err, errTorn) || n != int64(len(content)) {
		t.Errorf("of a torn content %d bytes, %v", n, err)
	}
	if len(largeLeft) != 0 {
		t.Errorf("%d large buffers are not given back", len(largeLeft))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Client and server both know whether the other is on this machine.
func TestNearby_IsKnownOnBothSides(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]bool{"@": true, "": true, "127.0.0.1:99": false, "[2001:db8::1]:99": false} {
		if got := bySocket(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("from %q: %v", from, got)
		}
	}
	for _, c := range []struct {
		b    Bucket
		want bool
	}{
		{Bucket{Base: "http://scrimp/v1/agent", Socket: true}, true}, {Bucket{Base: "http://scrimp/v1/agent"}, false},
		{Bucket{Base: "http://127.0.0.1:8080/v1/agent"}, true}, {Bucket{Base: "https://[::1]/v1/agent"}, true},
		{Bucket{Base: "https://192.0.2.1/v1/agent"}, false}, {Bucket{Base: "https://host/v1/agent"}, false},
	} {
		if got := c.b.Nearby(); got != c.want {
			t.Errorf("%s, socket %v: %v", c.b.Base, c.b.Socket, got)
		}
	}
}
