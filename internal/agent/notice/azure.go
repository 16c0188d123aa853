package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// azure watches Scheduled Events for the eviction of this machine.
type azure struct {
	base string
	http *http.Client
	name string // name of this machine; empty: unknown
	seen []string
}

const (
	azureEvents = "/metadata/scheduledevents?api-version=2020-07-01"
	azureName   = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
)

// azureGrace is the minimum notice of an eviction, for an event without a time.
const azureGrace = 30 * time.Second

type scheduledEvents struct {
	Events []scheduledEvent
}

type scheduledEvent struct {
	EventID     string
	EventType   string // Preempt, Terminate, Reboot, Redeploy, Freeze
	EventStatus string // Scheduled or Started
	NotBefore   string // an HTTP date; empty once it has started
	Resources   []string
}

func (w *azure) poll(ctx context.Context) ([]Notice, error) {
	header := map[string]string{"Metadata": "true"}
	if w.name == "" { // all machines of a scale set receive its events
		if a, err := ask(ctx, w.http, answerTime, http.MethodGet, w.base+azureName, header); err == nil &&
			a.status == http.StatusOK {
			w.name = strings.TrimSpace(string(a.body))
		}
	}
	// The first response may take two minutes, while the service starts.
	a, err := ask(ctx, w.http, 2*longPoll+answerTime, http.MethodGet, w.base+azureEvents, header)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("read %s: status %d", azureEvents, a.status)
	}
	var doc scheduledEvents
	if err := json.Unmarshal(a.body, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", azureEvents, err)
	}
	var out []Notice
	for _, e := range doc.Events {
		if !w.takes(e) || slices.Contains(w.seen, e.EventID) {
			continue
		}
		w.seen = append(w.seen, e.EventID)
		until, err := http.ParseTime(e.NotBefore)
		if err != nil {
			until = time.Now().Add(azureGrace)
		}
		out = append(out, Notice{Source: "azure", Until: until.UTC()})
	}
	return out, nil
}

// takes reports whether e ends the programs of this machine. A freeze does not.
func (w *azure) takes(e scheduledEvent) bool {
	switch e.EventType {
	case "Preempt", "Terminate", "Reboot", "Redeploy":
	default:
		return false
	}
	return w.name == "" || len(e.Resources) == 0 || slices.Contains(e.Resources, w.name)
}
