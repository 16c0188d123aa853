package marketd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
)

func (d *daemon) routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			d.mu.Lock()
			d.asked = time.Now()
			d.mu.Unlock()
			v, err := f(r)
			w.Header().Set("Content-Type", "application/json")
			if err != nil {
				out := local.Refusal{Text: err.Error()}
				for kind, known := range local.Kinds {
					if errors.Is(err, known) {
						out.Kind = kind
					}
				}
				w.WriteHeader(http.StatusConflict)
				v = out
			}
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	handle("POST /launch", func(r *http.Request) (any, error) {
		var req engine.Request
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return nil, fmt.Errorf("launch: %w", err)
		}
		return d.launch(req)
	})
	handle("POST /terminate", func(r *http.Request) (any, error) {
		id := r.URL.Query().Get("id")
		d.mu.Lock()
		defer d.mu.Unlock()
		n := slices.IndexFunc(d.list, func(m *machine) bool { return m.ID == id })
		if n < 0 || d.list[n].State == engine.Ended {
			return nil, fmt.Errorf("instance %q: %w", id, engine.ErrNotFound)
		}
		return struct{}{}, d.finish(d.list[n], engine.Terminated, d.now())
	})
	handle("GET /instances", func(*http.Request) (any, error) { return d.show(), nil })
	handle("GET /offers", func(*http.Request) (any, error) {
		now := d.since(d.now())
		var v local.Sale
		for _, l := range d.opened.Trace.Lines {
			v.Offers = append(v.Offers, l.Sold(d.opened.At))
			v.Quotes = append(v.Quotes, d.opened.Trace.Quote(l, now, d.opened.At))
		}
		return v, nil
	})
	handle("GET /clock", func(*http.Request) (any, error) {
		return engine.Clock{Name: d.opened.Trace.Name, Wall: d.opened.begun(), Market: d.opened.At,
			Speed: d.opened.Trace.Speed}, nil
	})
	handle("POST /stop", func(*http.Request) (any, error) {
		time.AfterFunc(50*time.Millisecond, d.stop) // after the response is sent
		return struct{}{}, nil
	})
	return mux
}
