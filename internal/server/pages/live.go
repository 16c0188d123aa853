package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/threadtime"
)

const (
	liveEvery = 5 * time.Second / 4 // lowest interval between two updates of a page
	liveBeat  = 2 * time.Second     // interval between looks at what changes without an event
)

// renderPace limits live updates to a third of a processor together: after each, the next waits for twice the
// processor time that it took. Readers who see the same share an update; of others, the more have a page open, the
// longer each waits.
type renderPace struct {
	begin sync.Once
	turn  chan struct{} // holds a value while a reader has its turn
	rest  time.Time
	made  map[string]rendered // by what is rendered, and for whom
}

// rendered is an update that others may take: those who ask within shareFor, and those who were waiting when it was
// made.
type rendered struct {
	event []byte // as it is sent; nil: the reader may not see the page
	sum   [sha256.Size]byte
	at    time.Time
}

// renderedOf makes the update of the main part of a page; nil if the reader may not see it.
func renderedOf(body []byte) (m rendered) {
	if body == nil {
		return m
	}
	var b bytes.Buffer
	_, _ = b.WriteString("event: main\ndata: ") // a buffer never fails
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)     // it would double the size
	_ = e.Encode(string(body)) // a string always encodes; the encoder ends the line
	_ = b.WriteByte('\n')
	m.event, m.sum = b.Bytes(), sha256.Sum256(body)
	return m
}

const (
	shareFor = liveEvery / 2
	madeFor  = 10 * time.Second // how long an update is kept for those who wait
)

// accessPath is the address of the page that shows which session is the reader's own.
const accessPath = "/access"

// do waits for its turn and renders what look returns, or takes what was rendered under its key meanwhile. A key of
// "" is shared with nobody.
func (p *renderPace) do(r *http.Request, look func() (key string, render func() []byte)) (m rendered, err error) {
	p.begin.Do(func() { p.turn = make(chan struct{}, 1) })
	came := time.Now()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-r.Context().Done():
		return m, r.Context().Err()
	}
	key, render := look()
	if m, ok := p.made[key]; ok && m.at.After(came.Add(-shareFor)) {
		return m, nil
	}
	if err := pause(r, time.Until(p.rest), nil); err != nil {
		return m, err
	}
	cost := threadtime.Of(func() { m = renderedOf(render()) })
	m.at = time.Now()
	p.rest = m.at.Add(cost * 2)
	maps.DeleteFunc(p.made, func(_ string, old rendered) bool { return m.at.Sub(old.at) >= madeFor })
	if key != "" && m.event != nil {
		if p.made == nil {
			p.made = map[string]rendered{}
		}
		p.made[key] = m
	}
	return m, nil
}

// pause waits for a span, or until something changes.
func pause(r *http.Request, span time.Duration, changed <-chan struct{}) error {
	if span <= 0 {
		return r.Context().Err()
	}
	t := time.NewTimer(span)
	defer t.Stop()
	select {
	case <-r.Context().Done():
		return r.Context().Err()
	case <-t.C:
	case <-changed:
	}
	return nil
}

// live streams the changes of a page as server-sent events: the whole main part, each time that it differs.
func (s *Site) live(w http.ResponseWriter, r *http.Request) {
	guard(w)
	at, _ := url.Parse(local(r.URL.Query().Get("at"))) // local has parsed it
	p, of, known := pageAt(r, at)
	v, err := s.reader(r)
	if err != nil || !known || p.still {
		w.WriteHeader(http.StatusNoContent) // a status on which browsers do not reconnect
		return
	}
	end, err := s.Stream("user " + v.me.User)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for last := [sha256.Size]byte{}; ; {
		changed := s.Changed()
		now, err := s.pace.do(r, func() (string, func() []byte) { return s.part(p, of) })
		if err != nil {
			return
		}
		if now.event == nil { // signed out, or no longer allowed to see it
			_, _ = fmt.Fprint(w, "event: gone\ndata: {}\n\n")
			_ = flush.Flush()
			return
		}
		event := now.event
		if now.sum == last {
			event = []byte(": \n\n") // heartbeat
		}
		last = now.sum
		if _, err := w.Write(event); err != nil || flush.Flush() != nil {
			return
		}
		// All readers of an update look again at the same time, so that the next one reaches them all.
		if pause(r, time.Until(now.at.Add(liveEvery)), nil) != nil ||
			pause(r, time.Until(now.at.Add(liveBeat)), changed) != nil {
			return
		}
	}
}

// part returns a function that renders the main part of a page for the reader, or nil if the reader may not see it. The
// main part is the same for all readers with the same rights, whose key it returns: those who may only look, and all
// sessions of a user who may act on jobs of their own. That of the page Access is the session's own.
func (s *Site) part(p page, of *http.Request) (key string, render func() []byte) {
	v, err := s.reader(of)
	if err != nil {
		return "", func() []byte { return nil }
	}
	if p.path != accessPath {
		key = fmt.Sprint(of.URL.RequestURI(), "\n", v.me.Best, v.me.Grants)
		if atLeast(v.me.Best, client.Submitter) {
			key += "\n" + v.me.User
		}
	}
	return key, func() []byte {
		if v.get("/v1/server", &v.server) != nil {
			return nil
		}
		body, err := v.render(p)
		if err != nil {
			return nil
		}
		return main(body)
	}
}

// pageAt finds the page of an address, and makes the request for it.
func pageAt(r *http.Request, at *url.URL) (p page, of *http.Request, known bool) {
	mux := http.NewServeMux()
	for _, one := range list() {
		mux.HandleFunc("GET "+one.path, func(_ http.ResponseWriter, r *http.Request) { p, of, known = one, r, true })
	}
	asks := r.Clone(r.Context())
	asks.Method, asks.URL, asks.RequestURI = http.MethodGet, at, at.RequestURI()
	mux.ServeHTTP(&answer{header: http.Header{}}, asks)
	return p, of, known
}
