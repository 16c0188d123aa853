package marketd

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// serveMeta serves the machine's metadata on loopback at the address that the machine was given, in
// the forms of AWS (IMDSv2), Compute Engine and Azure. The caller holds mu.
//
// Each machine has its own loopback address if the system has more than one; its programs can be
// reached there too. On the shared address, another machine may get its port after a restart, and
// an agent must never read another machine's notice.
func (d *daemon) serveMeta(m *machine, beside ...*machine) error {
	select {
	case <-d.quit: // Serve has stopped the services or is about to: it would wait for this one for ever
		return errors.New("serve metadata: the daemon ends")
	default:
	}
	host := m.Host
	if host == "" {
		host = d.freeLoopback(beside)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(m.Port)))
	if err != nil && m.Host == "" {
		host = "127.0.0.1"
		l, err = net.Listen("tcp", host+":0")
	}
	if err != nil {
		return fmt.Errorf("serve metadata: %w", err)
	}
	m.Host, m.Port, m.served = host, l.Addr().(*net.TCPAddr).Port, d.wall()
	meta := &http.Server{Handler: d.metadata(m), ReadHeaderTimeout: 5 * time.Second}
	m.meta = meta
	d.tasks.Go(func() { _ = meta.Serve(l) })
	return nil
}

// freeLoopback returns an address that no machine of this market uses, including those in the same
// launch. The caller holds mu.
func (d *daemon) freeLoopback(beside []*machine) string {
	for {
		host := ownLoopback()
		has := func(m *machine) bool { return m.Host == host }
		if !slices.ContainsFunc(d.list, has) && !slices.ContainsFunc(beside, has) {
			return host
		}
	}
}

// ownLoopback returns a random loopback address 127.x.y.z, which probably nothing else listens on.
func ownLoopback() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return net.IPv4(127, 1+b[0]%254, b[1], 1+b[2]%254).String()
}

// noticed returns the wall time of the machine's interruption, and of its announcement.
func (d *daemon) noticed(m *machine) (until, from time.Time, ok bool) {
	if m.LostAt.IsZero() || m.Warning <= 0 {
		return time.Time{}, time.Time{}, false
	}
	until = d.toWall(m.LostAt)
	return until, until.Add(-m.Warning), true
}

// announced returns the wall time of the machine's interruption once it is announced.
func (d *daemon) announced(m *machine) (until time.Time, ok bool) {
	until, from, ok := d.noticed(m)
	return until, ok && !d.wall().Before(from)
}

// maxTokenLife is the longest lifetime of an IMDSv2 token, in seconds.
const maxTokenLife = 21600

// tokens holds the session tokens of one machine's metadata service.
type tokens struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (t *tokens) give(now time.Time, life time.Duration) string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	token := hex.EncodeToString(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	for old, until := range t.until {
		if now.After(until) {
			delete(t.until, old)
		}
	}
	t.until[token] = now.Add(life)
	return token
}

func (t *tokens) good(now time.Time, token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until, known := t.until[token]
	return known && now.Before(until)
}

func (d *daemon) metadata(m *machine) http.Handler {
	mux := http.NewServeMux()
	d.aws(mux, m)
	d.gce(mux, m)
	d.azure(mux, m)
	return mux
}

// aws serves EC2's form, with tokens required.
func (d *daemon) aws(mux *http.ServeMux, m *machine) {
	const ttl, name = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
	given := tokens{until: map[string]time.Time{}}
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		life, err := strconv.Atoi(r.Header.Get(ttl))
		switch {
		case r.Header.Get("X-Forwarded-For") != "":
			http.Error(w, "no token through a proxy", http.StatusForbidden)
			return
		case err != nil || life < 1 || life > maxTokenLife:
			http.Error(w, "the lifetime of the token is missing, or is not 1 to 21600 s", http.StatusBadRequest)
			return
		}
		w.Header().Set(ttl, strconv.Itoa(life))
		_, _ = w.Write([]byte(given.give(d.wall(), time.Duration(life)*time.Second)))
	})
	document := func(path string, value func() (string, bool)) {
		mux.HandleFunc("GET /latest/meta-data/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !given.good(d.wall(), r.Header.Get(name)) {
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
	document("instance-id", func() (string, bool) { return m.ID, true })
	document("local-ipv4", func() (string, bool) { return m.Host, true })
	document("placement/availability-zone", func() (string, bool) { return zone[min(1, len(zone)-1)], true })
	document("spot/instance-action", func() (string, bool) {
		until, ok := d.announced(m)
		b, _ := json.Marshal(map[string]string{"action": "terminate", "time": until.UTC().Format(time.RFC3339Nano)})
		return string(b), ok
	})
}

// maxWait limits a waiting request in Compute Engine's form.
const maxWait = 5 * time.Minute

// google refuses a request without the header that Compute Engine requires.
func google(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Metadata-Flavor", "Google")
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "the header Metadata-Flavor is missing", http.StatusForbidden)
		return false
	}
	return true
}

// gce serves Compute Engine's form: the address, and a flag that clients may wait for.
func (d *daemon) gce(mux *http.ServeMux, m *machine) {
	const instance = "GET /computeMetadata/v1/instance/"
	mux.HandleFunc(instance+"network-interfaces/0/ip", func(w http.ResponseWriter, r *http.Request) {
		if google(w, r) {
			_, _ = w.Write([]byte(m.Host))
		}
	})
	mux.HandleFunc(instance+"preempted", func(w http.ResponseWriter, r *http.Request) {
		if !google(w, r) {
			return
		}
		flag := func() string {
			if _, ok := d.announced(m); ok {
				return "TRUE"
			}
			return "FALSE"
		}
		q := r.URL.Query()
		if q.Get("wait_for_change") == "true" && (q.Get("last_etag") == "" || q.Get("last_etag") == strings.ToLower(flag())) {
			d.waitNotice(r, m, q.Get("timeout_sec"))
		}
		v := flag()
		w.Header().Set("ETag", strings.ToLower(v))
		_, _ = w.Write([]byte(v))
	})
}

// waitNotice waits until the machine's notice changes, the client's limit is over, or the client or
// the daemon ends.
func (d *daemon) waitNotice(r *http.Request, m *machine, seconds string) {
	limit := maxWait
	if n, err := strconv.Atoi(seconds); err == nil && n >= 0 {
		limit = min(limit, time.Duration(n)*time.Second)
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	look := time.NewTicker(lookProcess) // a single timer would be late if the computer sleeps
	defer look.Stop()
	_, before := d.announced(m)
	for {
		if _, ok := d.announced(m); ok != before {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-d.quit:
			return
		case <-end.C:
			return
		case <-look.C:
		}
	}
}

// azure serves the form of Scheduled Events.
func (d *daemon) azure(mux *http.ServeMux, m *machine) {
	handle := func(path string, f func(http.ResponseWriter)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
				http.Error(w, "the header Metadata or the parameter api-version is missing", http.StatusBadRequest)
				return
			}
			f(w)
		})
	}
	handle("/metadata/instance/compute/name", func(w http.ResponseWriter) { _, _ = w.Write([]byte(m.ID)) })
	handle("/metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress",
		func(w http.ResponseWriter) { _, _ = w.Write([]byte(m.Host)) })
	handle("/metadata/scheduledevents", func(w http.ResponseWriter) {
		incarnation, events := 1, []map[string]any{}
		if until, ok := d.announced(m); ok {
			incarnation = 2
			events = append(events, map[string]any{
				"EventId": m.ID, "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": []string{m.ID},
				"EventStatus": "Scheduled", "NotBefore": until.UTC().Format(http.TimeFormat), "Description": "",
				"EventSource": "Platform", "DurationInSeconds": -1,
			})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"DocumentIncarnation": incarnation, "Events": events})
	})
}
