// Package datastream serves the files of an input to a program over HTTP while they arrive.
package datastream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/money"
)

// ahead is how many files are fetched beyond the one that the program opened last, in the order of their names. A store
// sends perhaps 100 MB/s over one connection, and a machine takes 1 GB/s.
const ahead = 8

// headerTime bounds the time for the header of a request.
const headerTime = 10 * time.Second

// View is an HTTP server on the loopback interface. Its address contains a token, because other users of the machine
// can connect to it, too.
type View struct {
	URL string // of the listing; ends with a slash

	cache    *datacache.Cache
	src      datacache.Source
	gigabyte *money.Rate
	log      *slog.Logger
	files    []datacache.File
	index    map[string]int // of files, by name
	server   *http.Server
	fetches  sync.WaitGroup
	ctx      context.Context // ends with the view
	cancel   context.CancelFunc

	mu      sync.Mutex
	flights map[int]*flight         // files that are being fetched
	held    map[int]*datacache.Hold // fetched ahead, and not opened yet
	seen    map[int]bool            // files that count as read
	read    datacache.Read
}

// Serve lists the files of a source and serves them. gigabyte is the price of reading 1e9 bytes from the source; nil:
// unknown. The view closes the source, also after an error.
func Serve(ctx context.Context, cache *datacache.Cache, src datacache.Source, gigabyte *money.Rate,
	log *slog.Logger) (*View, error) {
	v := &View{cache: cache, src: src, gigabyte: gigabyte, log: log, index: map[string]int{},
		flights: map[int]*flight{}, held: map[int]*datacache.Hold{}, seen: map[int]bool{}}
	var l net.Listener
	var err error
	if v.files, err = datacache.Files(ctx, src); err == nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	for i, f := range v.files {
		v.index[f.Name] = i
	}
	v.ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	token := strings.ToLower(rand.Text())
	v.URL = "http://" + l.Addr().String() + "/" + token + "/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+token+"/{name...}", v.answer)
	v.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerTime,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	v.fetches.Go(func() {
		if err := v.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve an input", "error", err)
		}
	})
	v.fetchAhead(-1)
	return v, nil
}

// Files returns how many files the input has, and their bytes.
func (v *View) Files() (files int, bytes int64) {
	for _, f := range v.files {
		bytes += f.Bytes
	}
	return len(v.files), bytes
}

// Close stops the server and all fetches, and returns what reached the machine.
func (v *View) Close() (datacache.Read, error) {
	v.cancel()
	err := v.server.Close()
	v.fetches.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range v.held {
		h.Release()
	}
	clear(v.held)
	v.read.Requests = v.src.Requests()
	return v.read, errors.Join(err, v.src.Close())
}

// listed is a file in the listing.
type listed struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	URL   string `json:"url"`
}

func (v *View) answer(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == "" {
		list := make([]listed, 0, len(v.files))
		for _, f := range v.files {
			list = append(list, listed{f.Name, f.Bytes, v.URL + escape(f.Name)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // the program may have closed the connection
		return
	}
	i, there := v.index[name]
	if !there {
		http.Error(w, fmt.Sprintf("the input has no file %.200q: GET %s lists them", name, v.URL), http.StatusNotFound)
		return
	}
	f := v.join(i)
	v.fetchAhead(i)
	b := &body{ctx: r.Context(), v: v, i: i, f: f}
	defer b.close()
	if err := b.begun(); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(&sender{w, b}, r, "", time.Time{}, b)
}

// escape returns a file's name as the path of a URL.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// fetchAhead begins to fetch the files after one, unless that was done before.
func (v *View) fetchAhead(i int) {
	for n := i + 1; n <= i+ahead && n < len(v.files); n++ {
		v.mu.Lock()
		known := v.seen[n] || v.flights[n] != nil
		v.mu.Unlock()
		if !known {
			v.join(n).leave()
		}
	}
}
