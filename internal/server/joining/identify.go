package joining

import (
	"errors"
	"net/http"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// identifier returns the named engine's driver if it can verify the identity of its machines, else nil.
func (d *Service) identifier(name string) engine.Identifier {
	for _, e := range d.Engines {
		if i, ok := e.Driver.(engine.Identifier); ok && e.Name == name {
			return i
		}
	}
	return nil
}

// Identify issues a registration token to a machine that starts without a secret. The machine first proves
// with a document signed by its provider which of the rented machines it is. The token expires when a machine
// registers with it, so a later reader of the same document gains nothing.
func (d *Service) Identify(w http.ResponseWriter, r *http.Request) {
	if ok, wait := d.Pace.TakeMany("identify "+auth.From(r), 1, time.Now()); !ok {
		auth.Slower(w, wait, "ask less often")
		return
	}
	b, ok := reply.FromAgent[api.Identification](w, r)
	if !ok {
		return
	}
	i := d.identifier(b.Engine)
	if i == nil {
		reply.Problem(w, http.StatusForbidden, "no machine of an engine here",
			"only a machine that the server has launched may ask: switch it off", nil)
		return
	}
	instance, key, err := i.Identify(
		r.Context(),
		engine.Evidence{Document: []byte(b.Document), Signature: []byte(b.Signature)},
	)
	allocation, ours := d.Allocation(key)
	switch {
	case errors.Is(err, engine.ErrImpostor), err == nil && !ours:
		d.Log.Warn("a machine sent a foreign identity document", "engine", b.Engine, "from", auth.From(r), "error", err)
		reply.Problem(w, http.StatusForbidden, "it is not a machine of the engine",
			"only a machine that the server has launched may ask: switch it off", nil)
	case err != nil:
		d.Log.Warn("cannot identify a machine yet", "engine", b.Engine, "from", auth.From(r), "error", err)
		reply.Problem(w, http.StatusServiceUnavailable, "not known yet", "try again", nil)
	default:
		reply.JSON(w, api.Identified{Instance: instance, Token: d.Gate.Tickets.For(auth.BootstrapTicket, allocation)})
	}
}

// Program sends the server's executable to a machine that so far knows only its hash.
func (d *Service) Program(w http.ResponseWriter, r *http.Request) {
	wanted := false
	for _, e := range d.Engines {
		i, ok := e.Driver.(engine.Identifier)
		wanted = wanted || ok && i.Program() != "" && i.Program() == r.PathValue("hash")
	}
	if !wanted {
		reply.Problem(
			w,
			http.StatusNotFound,
			"the server has no such program",
			"it is the program of an earlier server: begin again",
			nil,
		)
		return
	}
	if ok, wait := d.Pace.TakeMany("program "+auth.From(r), 1, time.Now()); !ok {
		auth.Slower(w, wait, "ask less often")
		return
	}
	reply.Program(w, d.Exe, d.Log)
}
