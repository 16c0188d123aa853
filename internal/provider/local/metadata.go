package local

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// serveMeta serves the machine's metadata on loopback, in the forms of AWS
// (IMDSv2), Compute Engine and Azure, on the port that the machine was told.
func (d *daemon) serveMeta(m *machine) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.Port))
	if err != nil {
		return fmt.Errorf("serve metadata: %w", err)
	}
	m.Port = l.Addr().(*net.TCPAddr).Port
	m.meta = &http.Server{Handler: d.metadata(m), ReadHeaderTimeout: 5 * time.Second}
	d.tasks.Go(func() { _ = m.meta.Serve(l) })
	return nil
}

// noticed returns when the machine will be taken, in wall time, once that has been announced.
func (d *daemon) noticed(m *machine) (until time.Time, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.LostAt.IsZero() || m.Warning <= 0 {
		return time.Time{}, false
	}
	until = d.toWall(m.LostAt)
	return until, !time.Now().Before(until.Add(-m.Warning))
}

func (d *daemon) metadata(m *machine) http.Handler {
	mux := http.NewServeMux()
	var mu sync.Mutex
	tokens := map[string]bool{}
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "" {
			http.Error(w, "the lifetime of the token is missing", http.StatusBadRequest)
			return
		}
		mu.Lock()
		token := fmt.Sprintf("%s-%d", m.ID, len(tokens))
		tokens[token] = true
		mu.Unlock()
		w.Header().Set("X-aws-ec2-metadata-token-ttl-seconds", r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds"))
		_, _ = w.Write([]byte(token))
	})
	aws := func(path string, value func() (string, bool)) {
		mux.HandleFunc("GET /latest/meta-data/"+path, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			known := tokens[r.Header.Get("X-aws-ec2-metadata-token")]
			mu.Unlock()
			if !known {
				http.Error(w, "no valid token", http.StatusUnauthorized)
				return
			}
			v, ok := value()
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write([]byte(v))
		})
	}
	zone := strings.Split(string(m.Offer), "/")
	aws("instance-id", func() (string, bool) { return m.ID, true })
	aws("placement/availability-zone", func() (string, bool) { return zone[min(1, len(zone)-1)], true })
	aws("spot/instance-action", func() (string, bool) {
		until, ok := d.noticed(m)
		b, _ := json.Marshal(map[string]string{"action": "terminate", "time": until.UTC().Format(time.RFC3339Nano)})
		return string(b), ok
	})
	mux.HandleFunc("GET /computeMetadata/v1/instance/preempted", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "the header Metadata-Flavor is missing", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		if _, ok := d.noticed(m); ok {
			_, _ = w.Write([]byte("TRUE"))
			return
		}
		_, _ = w.Write([]byte("FALSE"))
	})
	mux.HandleFunc("GET /metadata/scheduledevents", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata") != "true" {
			http.Error(w, "the header Metadata is missing", http.StatusBadRequest)
			return
		}
		events := []map[string]any{}
		if until, ok := d.noticed(m); ok {
			events = append(events, map[string]any{
				"EventId": m.ID, "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": []string{m.ID},
				"EventStatus": "Scheduled", "NotBefore": until.UTC().Format(http.TimeFormat),
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"DocumentIncarnation": 1, "Events": events})
	})
	return mux
}
