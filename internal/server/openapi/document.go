package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
)

// Document serves the description. It builds and compresses it once, at the first request: a request needs no token,
// and building takes a hundred times longer than sending.
type Document struct {
	Make func() []byte

	once       sync.Once
	text, gzip []byte
	tag        string
}

// ServeHTTP implements http.Handler.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.once.Do(d.make)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache") // clients cache it and revalidate with its tag
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", d.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), d.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	text := d.text
	if accepts(r) {
		h.Set("Content-Encoding", "gzip")
		text = d.gzip
	}
	_, _ = w.Write(text)
}

// accepts reports whether the client reads gzip.
func accepts(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

func (d *Document) make() {
	d.text = d.Make()
	sum := sha256.Sum256(d.text)
	d.tag = `W/"` + hex.EncodeToString(sum[:16]) + `"`
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(d.text) // a buffer never fails
	_ = z.Close()
	d.gzip = b.Bytes()
}
