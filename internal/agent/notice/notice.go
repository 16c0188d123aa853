// Package notice watches the clouds' instance metadata for interruption notices. Every watcher
// speaks the cloud's documented protocol, so that a local market with the same protocol needs no
// code of its own.
package notice

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Notice reports that the provider will interrupt the machine, or advises to leave it.
type Notice struct {
	Source string    // aws, gcp or azure
	Until  time.Time // wall time of the interruption; zero with Advice
	Advice bool      // the risk has grown but nothing is decided (AWS's rebalance recommendation)
}

// Endpoints lists the metadata services to watch; an empty one is not watched.
type Endpoints struct {
	AWS   string // http://host:port/
	GCE   string // host:port
	Azure string // http://host:port
	// Interval is the time between two polls; 0 means one second.
	Interval time.Duration
}

// Timing of the watchers. The clouds give 30 s to 120 s of notice, so that polling every second
// costs little of it.
const (
	interval   = time.Second
	retry      = 2 * time.Second // after an error: finds a restarted market quickly
	answerTime = 5 * time.Second
	gceGrace   = 30 * time.Second // Compute Engine gives no time, but promises this much
	longPoll   = time.Minute
	maxBody    = 1 << 20
)

// Watch calls found with each new notice until ctx is done, and returns after all its watchers. It
// calls found from several goroutines. A nil client means one without a proxy.
func Watch(ctx context.Context, e Endpoints, client *http.Client, found func(Notice)) {
	if client == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: longPoll}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if e.AWS != "" {
		w := &aws{base: strings.TrimRight(e.AWS, "/"), http: client}
		wg.Go(func() { every(ctx, cmp.Or(e.Interval, interval), w.poll, found) })
	}
	if e.GCE != "" {
		w := &gce{host: e.GCE, http: client}
		wg.Go(func() { every(ctx, cmp.Or(e.Interval, interval), w.poll, found) })
	}
	if e.Azure != "" {
		w := &azure{base: strings.TrimRight(e.Azure, "/"), http: client}
		wg.Go(func() { every(ctx, cmp.Or(e.Interval, interval), w.poll, found) })
	}
}

// every calls poll until ctx is done, with the given pause between calls. A long poll is just a slow call.
func every(ctx context.Context, pause time.Duration, poll func(context.Context) ([]Notice, error), found func(Notice)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		notices, err := poll(ctx)
		for _, n := range notices {
			found(n)
		}
		if err != nil {
			timer.Reset(retry)
		} else {
			timer.Reset(pause)
		}
	}
}

// answer is the response of a metadata service.
type answer struct {
	status int
	body   []byte
	header http.Header
}

func ask(ctx context.Context, c *http.Client, within time.Duration, method, url string,
	header map[string]string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // closing a body that was read cannot lose anything
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return answer{resp.StatusCode, body, resp.Header}, err
}
