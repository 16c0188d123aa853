package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"scrimp/client"
)

// visit is the request of a reader, with the reader's rights.
type visit struct {
	site   *Site
	r      *http.Request
	as     func(*http.Request) *http.Request // adds the reader's credentials to a request for the API
	me     client.Me
	server client.Server
	now    time.Time
}

// visit identifies the reader of a page, and describes the server.
func (s *Site) visit(r *http.Request) (*visit, error) {
	v, err := s.reader(r)
	if err == nil {
		err = v.get("/v1/server", &v.server)
	}
	return v, err
}

// reader identifies the reader of a page.
func (s *Site) reader(r *http.Request) (*visit, error) {
	as, ok := s.credentials(r)
	if !ok {
		return nil, &client.Problem{Status: http.StatusUnauthorized, Title: "you are not signed in"}
	}
	v := &visit{site: s, r: r, as: as, now: s.Now()}
	if err := v.get("/v1/me", &v.me); err != nil {
		return nil, err
	}
	if best := v.me.Best; best == client.Nobody || best == "" {
		return v, &client.Problem{Status: http.StatusForbidden, Title: v.me.User + " has no role in any team",
			Fix: "an admin grants one with scrimp users set " + v.me.User + " --grant TEAM=viewer"}
	}
	return v, nil
}

// mostAnswer bounds a response of the API for a page, in bytes.
const mostAnswer = 32 << 20

// get fetches a value from the API.
func (v *visit) get(path string, out any) error {
	_, err := v.ask(http.MethodGet, path, nil, out)
	return err
}

// ask calls the API and decodes the response into out, unless out is nil.
func (v *visit) ask(method, path string, body, out any) (http.Header, error) {
	text := []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	return v.send(method, path, "application/json", text, out)
}

// send calls the API with a body of any media type.
func (v *visit) send(method, path, kind string, body []byte, out any) (http.Header, error) {
	got := &answer{header: http.Header{}, most: mostAnswer}
	r, err := v.request(v.r.Context(), method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", kind)
	} else {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	v.site.API.ServeHTTP(got, r)
	return got.header, got.decode(out)
}

// request returns a request for the API with the reader's credentials and address.
func (v *visit) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return nil, &client.Problem{Status: http.StatusBadRequest, Title: "the address is not valid"}
	}
	r.RemoteAddr = v.r.RemoteAddr
	return v.as(r), nil
}

// answer buffers a response of the API, up to a limit.
type answer struct {
	header http.Header
	body   bytes.Buffer
	status int
	most   int
	over   bool
	done   func() // called once the limit is exceeded; may be nil
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

var errLong = errors.New("the response is too long for a page")

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	room := a.most - a.body.Len()
	a.body.Write(b[:min(len(b), room)])
	if len(b) > room {
		if a.over = true; a.done != nil {
			a.done()
		}
		return room, errLong
	}
	return len(b), nil
}

// decode decodes the response, or returns the problem that it describes.
func (a *answer) decode(out any) error {
	switch {
	case a.status >= http.StatusBadRequest:
		p := &client.Problem{}
		if json.Unmarshal(a.body.Bytes(), p) != nil || p.Status == 0 {
			p = &client.Problem{Title: http.StatusText(a.status)}
		}
		p.Status = a.status
		return p
	case a.over:
		return &client.Problem{Status: http.StatusInternalServerError, Title: errLong.Error(),
			Fix: "narrow it down with a filter, or use the command that the page names"}
	case out == nil || a.body.Len() == 0:
		return nil
	}
	return json.Unmarshal(a.body.Bytes(), out)
}

// asProblem converts an error for the reader.
func asProblem(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p
	}
	return &client.Problem{Status: http.StatusInternalServerError, Title: "the page was not made", Detail: err.Error(),
		Fix: "this is a bug of scrimp: report it with what the page says"}
}

// data forwards GET requests to the API: the JSON of a page, streamed output, archives.
func (s *Site) data(w http.ResponseWriter, r *http.Request) {
	guard(w)
	as, ok := s.credentials(r)
	v := &visit{site: s, r: r, as: as}
	if !ok {
		s.fail(w, r, nil, &client.Problem{Status: http.StatusUnauthorized})
		return
	}
	// The mux has unescaped the path once; RawPath keeps escapes within a segment.
	target := url.URL{Path: "/v1/" + r.PathValue("path"), RawQuery: r.URL.RawQuery}
	if raw := r.URL.EscapedPath(); len(raw) > len("/data/") {
		target.RawPath = "/v1/" + raw[len("/data/"):]
	}
	of, err := v.request(r.Context(), http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		s.fail(w, r, v, err)
		return
	}
	for _, name := range []string{"Range", "Last-Event-ID"} {
		if value := r.Header.Get(name); value != "" {
			of.Header.Set(name, value)
		}
	}
	s.API.ServeHTTP(w, of)
}
