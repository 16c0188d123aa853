package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/engine"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// What one machine that joins may do: connect so many times a second, and so many times at once.
const (
	joinRate  = 2
	joinBurst = 20
)

const (
	joinProtocol   = "scrimp-hostd-1"
	sessionHeader  = "Scrimp-Session"
	longestSession = 64
	upgradeTime    = 10 * time.Second // for the answer to be accepted
	mostFindings   = 2 * time.Minute  // for what is tried of an engine
)

// joiner is the engine, and the name of its machine, that a token lets in.
func (s *Server) joiner(token string) (j engine.Joiner, name string) {
	if !strings.HasPrefix(token, "join.") {
		return nil, ""
	}
	for _, e := range s.engines {
		if j, ok := e.Driver.(engine.Joiner); ok {
			if machine, ok := j.Admits(token); ok {
				return j, e.Name + " " + machine
			}
		}
	}
	return nil, ""
}

// admits is a Gate's Admits.
func (s *Server) admits(token string) (name string, ok bool) {
	j, name := s.joiner(token)
	return name, j != nil
}

// getJoin makes the connection of a machine a stream on which its engine asks.
func (s *Server) getJoin(w http.ResponseWriter, r *http.Request) {
	token := auth.TokenShown(r)
	j, name := s.joiner(token)
	session := r.Header.Get(sessionHeader)
	switch {
	case j == nil: // revoked since
		reply.Problem(w, http.StatusUnauthorized, "no valid token of a machine", "scrimp engine token makes one", nil)
		return
	case !strings.EqualFold(r.Header.Get("Upgrade"), joinProtocol) || r.ProtoMajor != 1 || session == "" ||
		len(session) > longestSession:
		w.Header().Set("Upgrade", joinProtocol)
		reply.Problem(w, http.StatusUpgradeRequired, "a machine joins by an upgrade to "+joinProtocol+" over HTTP/1.1",
			"run scrimp agent join; a proxy in between has to pass on the headers Upgrade and Connection", nil)
		return
	}
	if ok, wait := s.joins.TakeMany(name, 1, time.Now()); !ok {
		auth.Slower(w, wait, "stay connected")
		return
	}
	seat, err := j.Claim(r.Context(), token, session)
	if errors.Is(err, engine.ErrTaken) {
		reply.Problem(w, http.StatusConflict, "another machine has joined by that name, and answers",
			"end scrimp agent join there, or give this machine a name and token of its own: scrimp engine add", nil)
		return
	}
	if err != nil {
		reply.Problem(w, http.StatusUnauthorized, "no valid token of a machine", "scrimp engine token makes one", err)
		return
	}
	defer seat.Close()
	conn, ok := upgraded(w)
	if !ok {
		return
	}
	s.opts.Log.Info("a machine has joined", "machine", name, "from", auth.From(r))
	ctx, done := s.whileHere(r)
	defer done()
	if err := seat.Serve(ctx, conn); err != nil {
		s.opts.Log.Info("a machine has left", "machine", name, "why", err)
	}
}

// whileHere outlives the request's own context, which ends before the machines are given back that an end
// with --now gives back.
func (s *Server) whileHere(r *http.Request) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	go func() { // ends with the handler, or with the server's lead
		select {
		case <-s.closed:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

// upgraded takes the connection over from HTTP.
func upgraded(w http.ResponseWriter) (net.Conn, bool) {
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

// stream is a connection of which a part was read already.
type stream struct {
	net.Conn
	r *bufio.Reader
}

func (s stream) Read(b []byte) (int, error) { return s.r.Read(b) }

// joined are the machines of an engine that come by themselves.
func (s *Server) joined(name string) (list []client.JoinedMachine) {
	for _, e := range s.engines {
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

// getFindings tries an engine from here: machines that joined are reached by this server alone.
func (s *Server) getFindings(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), mostFindings)
	defer cancel()
	list := []client.Finding{}
	for _, e := range s.engines {
		d, ok := e.Driver.(engine.Examiner)
		if e.Name != r.PathValue("id") {
			continue
		}
		if ok {
			for _, f := range d.Examine(ctx) {
				list = append(list, client.Finding{Name: f.Name, OK: f.OK, Text: f.Text})
			}
		}
		reply.JSON(w, list)
		return
	}
	reply.Problem(w, http.StatusNotFound, "no such engine", "scrimp engine list shows those that are", nil)
}
