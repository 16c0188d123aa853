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

// policy lets a page load its own style, script and drawings, ask this server, and nothing else.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; object-src 'none'; frame-src 'none'; frame-ancestors 'none'"

// guard sets what keeps a browser from doing more with a page than show it.
func guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser says of a form that it comes from nowhere
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// mostForm bounds what a form sends: a job file is the largest.
const mostForm = 2 << 20

// mayPost reads the form of a POST, or refuses it. A browser says of each POST where it comes from; one that does not
// come from a page of this site, or does not say so, is refused, since the cookie alone proves nothing.
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

// sameOrigin reports whether a browser says that a page of this site sends the request.
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

// Here lets through requests that name this machine by its own address, and no other name. A page of another site
// whose name is made to lead here (DNS rebinding) is refused.
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

// send answers with a page, compressed where the browser takes that.
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

// harmless replaces what nobody sees and what turns text around: names, tags and output come from others.
func harmless(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return c
	case unicode.IsControl(c) || unicode.Is(unicode.Cf, c):
		return unicode.ReplacementChar
	}
	return c
}
