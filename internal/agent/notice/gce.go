package notice

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// gce watches Compute Engine's preempted flag, which the service returns as soon as it changes. The
// flag has no time; Google promises 30 s.
type gce struct {
	host string
	http *http.Client
	etag string
	told bool
}

const gcePreempted = "/computeMetadata/v1/instance/preempted"

func (w *gce) poll(ctx context.Context) ([]Notice, error) {
	q := url.Values{}
	if w.etag != "" { // the first poll must return at once: the flag may be set already
		q.Set("wait_for_change", "true")
		q.Set("last_etag", w.etag)
		q.Set("timeout_sec", fmt.Sprint(int(longPoll.Seconds())))
	}
	a, err := ask(ctx, w.http, longPoll+answerTime, http.MethodGet, "http://"+w.host+gcePreempted+"?"+q.Encode(),
		map[string]string{"Metadata-Flavor": "Google"})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("read %s: status %d", gcePreempted, a.status)
	}
	w.etag = a.header.Get("ETag")
	if w.told || !strings.EqualFold(strings.TrimSpace(string(a.body)), "TRUE") {
		return nil, nil
	}
	w.told = true
	return []Notice{{Source: "gcp", Until: time.Now().UTC().Add(gceGrace)}}, nil
}
