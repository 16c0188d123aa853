// Package joining answers machines that come by themselves: those that join an engine, and those that prove which
// rented machine they are.
package joining

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/engine"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// Limits on the connections of one machine that joins.
const (
	rate  = 2  // per second
	Burst = 20 // Burst is how many may follow each other at once.
)

// Service answers machines that come by themselves.
type Service struct {
	Gate       *auth.Gate
	Engines    []engine.Engine
	Allocation func(key string) (attempt string, ours bool) // of the launch with a key
	Exe        string                                       // the server's executable; "": this program
	Log        *slog.Logger
	Closed     <-chan struct{} // closed when the server needs its joined machines no longer
	Pace       *auth.Pace      // connections of a machine that keeps reconnecting
}

// New returns a service with a pace of its own.
func New(d Service) *Service {
	d.Pace = auth.NewBurst(rate, Burst)
	return &d
}

const (
	joinProtocol   = "scrimp-hostd-1"
	sessionHeader  = "Scrimp-Session"
	longestSession = 64
	upgradeTime    = 10 * time.Second // to write the response that accepts the upgrade
	mostFindings   = 2 * time.Minute  // for the checks of an engine
)

// joiner returns the engine and the machine's name that belong to a join token.
func (d *Service) joiner(token string) (j engine.Joiner, name string) {
	if !strings.HasPrefix(token, "join.") {
		return nil, ""
	}
	for _, e := range d.Engines {
		if j, ok := e.Driver.(engine.Joiner); ok {
			if machine, ok := j.Admits(token); ok {
				return j, e.Name + " " + machine
			}
		}
	}
	return nil, ""
}

// Name implements Gate.Admits.
func (d *Service) Name(token string) (name string, ok bool) {
	j, name := d.joiner(token)
	return name, j != nil
}

// Join upgrades the connection of a machine to a stream on which its engine sends requests.
func (d *Service) Join(w http.ResponseWriter, r *http.Request) {
	token := auth.TokenShown(r)
	j, name := d.joiner(token)
	session := r.Header.Get(sessionHeader)
	switch {
	case j == nil: // the token was revoked in the meantime
		reply.Problem(w, http.StatusUnauthorized, "no valid token of a machine", "scrimp engine token makes one", nil)
		return
	case !strings.EqualFold(r.Header.Get("Upgrade"), joinProtocol) || r.ProtoMajor != 1 || session == "" ||
		len(session) > longestSession:
		w.Header().Set("Upgrade", joinProtocol)
		reply.Problem(w, http.StatusUpgradeRequired, "a machine joins by an upgrade to "+joinProtocol+" over HTTP/1.1",
			"run scrimp agent join; a proxy in between has to pass on the headers Upgrade and Connection", nil)
		return
	}
	if ok, wait := d.Pace.TakeMany(name, 1, time.Now()); !ok {
		auth.Slower(w, wait, "stay connected")
		return
	}
	seat, err := j.Claim(r.Context(), token, session)
	if errors.Is(err, engine.ErrTaken) {
		reply.Problem(w, http.StatusConflict, "another machine has joined under that name, and responds",
			"end scrimp agent join there, or give this machine a name and token of its own: scrimp engine add", nil)
		return
	}
	if err != nil {
		reply.Problem(w, http.StatusUnauthorized, "no valid token of a machine", "scrimp engine token makes one", err)
		return
	}
	defer seat.Close()
	conn, ok := hijack(w)
	if !ok {
		return
	}
	d.Log.Info("a machine has joined", "machine", name, "from", auth.From(r))
	ctx, done := d.untilClosed(r)
	defer done()
	if err := seat.Serve(ctx, conn); err != nil {
		d.Log.Info("a machine has left", "machine", name, "why", err)
	}
}

// untilClosed returns a context that outlives the request's own. With stop --now, the request's context ends
// before the server has terminated its machines, which it does over this stream.
func (d *Service) untilClosed(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	go func() { // ends with the handler, or when the server no longer leads
		select {
		case <-d.Closed:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

// hijack takes the connection over from net/http.
func hijack(w http.ResponseWriter) (net.Conn, bool) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the connection is not upgraded", "see the server's log", err)
		return nil, false
	}
	_ = conn.SetDeadline(time.Time{})
	_ = conn.SetWriteDeadline(time.Now().Add(upgradeTime))
	_, err = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + joinProtocol +
		"\r\n\r\n"))
	if err != nil {
		_ = conn.Close()
		return nil, false
	}
	return stream{conn, buffered.Reader}, true
}

// stream is a connection whose first bytes are already in a buffer.
type stream struct {
	net.Conn
	r *bufio.Reader
}

func (s stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// Joined lists the machines that joined an engine by themselves.
func (d *Service) Joined(name string) (list []client.JoinedMachine) {
	for _, e := range d.Engines {
		j, ok := e.Driver.(engine.Joiner)
		if !ok || e.Name != name {
			continue
		}
		for _, m := range j.Joined() {
			list = append(list, client.JoinedMachine{Name: m.Name, Since: m.Since.UTC(), Heard: m.Heard.UTC(), From: m.From})
		}
	}
	return list
}

// Findings runs the checks of an engine on the server, which alone can reach machines that joined.
func (d *Service) Findings(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), mostFindings)
	defer cancel()
	list := []client.Finding{}
	for _, e := range d.Engines {
		examiner, ok := e.Driver.(engine.Examiner)
		if e.Name != r.PathValue("id") {
			continue
		}
		if ok {
			for _, f := range examiner.Examine(ctx) {
				list = append(list, client.Finding{Name: f.Name, OK: f.OK, Text: f.Text})
			}
		}
		reply.JSON(w, list)
		return
	}
	reply.Problem(w, http.StatusNotFound, "no such engine", "scrimp engine list shows those that are", nil)
}
