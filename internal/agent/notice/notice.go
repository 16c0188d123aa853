// Package notice watches the instance metadata of the clouds for the news that
// the machine will be interrupted. Every watcher speaks the cloud's documented
// form, so that a local market that serves the same form is watched by the same code.
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

// Notice says that the provider will take the machine, or advises to leave it.
type Notice struct {
	Source string    // aws, gcp or azure
	Until  time.Time // wall time at which the machine goes; zero with Advice
	Advice bool      // the risk has grown, nothing is decided (AWS's rebalance recommendation)
}

// Endpoints are the metadata services to watch; an empty one is not watched.
type Endpoints struct {
	AWS   string // http://host:port/
	GCE   string // host:port
	Azure string // http://host:port
	// Interval is the time between two polls; 0 is a second.
	Interval time.Duration
}

// How the watchers behave. The clouds give 30 s to 120 s, so that a second of
// polling costs little of a notice.
const (
	interval   = time.Second
	retry      = 2 * time.Second // after an error: a market that restarts is found again at once
	answerTime = 5 * time.Second
	gceGrace   = 30 * time.Second // Compute Engine does not say when; it promises this much
	longPoll   = time.Minute
	maxBody    = 1 << 20
)

// Watch reports each new notice to found until ctx is done, and returns when
// all its watchers have. found is called from several goroutines.
// A nil client means one that goes through no proxy.
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

// every calls poll with that pause between two calls until ctx is done. A poll that waits by itself is simply slow.
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

// answer is what a metadata service said.
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
	defer func() { _ = resp.Body.Close() }() // a failed close of a body that was read changes nothing
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return answer{resp.StatusCode, body, resp.Header}, err
}
