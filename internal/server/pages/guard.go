package pages

import (
	"compress/gzip"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"scrimp/client"
)

// policy lets a page load its own styles, scripts and images and call this server, and nothing else.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; object-src 'none'; frame-src 'none'; frame-ancestors 'none'"

// guard sets the security headers of a page.
func guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send forms with "Origin: null"
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// mostForm bounds the body of a form in bytes: a job file is the largest.
const mostForm = 2 << 20

// mayPost reads the form of a POST, or refuses it. The cookie alone proves nothing: the browser must also state that
// a page of this site sends the form.
func (s *Site) mayPost(w http.ResponseWriter, r *http.Request) bool {
	problem := &client.Problem{Status: http.StatusForbidden, Title: "the form was sent from another site",
		Fix: "send it from a page of this server; programs use /v1 with a token"}
	if sameOrigin(r) {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := r.ParseForm(); err == nil {
			return true
		}
		problem = &client.Problem{Status: http.StatusRequestEntityTooLarge, Title: "the form is too large, or broken",
			Fix: "send less than 2 MiB"}
	}
	send(w, r, problem.Status, s.frame(nil, page{file: "problem", title: "Not possible", still: true}, problem))
	return false
}

// sameOrigin reports whether the browser states that a page of this site sends the request.
func sameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return site == "same-origin"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && (u.Scheme == "http" || u.Scheme == "https")
}

// Here accepts requests only under this host's own loopback names. It refuses the page of another site whose name an
// attacker resolves to this host (DNS rebinding).
func Here(address string, h http.Handler) http.Handler {
	_, port, _ := strings.Cut(address, ":")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "127.0.0.1:"+port && r.Host != "localhost:"+port {
			guard(w)
			http.Error(w, "this address is not served here: use the link that scrimp open prints",
				http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// send sends a page, compressed if the browser accepts that.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(body)
	_ = z.Close()
}

// sanitize replaces invisible characters and those that change the text direction, since names, tags and output come
// from other users.
func sanitize(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return c
	case unicode.IsControl(c) || unicode.Is(unicode.Cf, c):
		return unicode.ReplacementChar
	}
	return c
}
