package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"scrimp/internal/api/signed"
	"scrimp/internal/server/reply"
)

// MaxPull is how much a machine may send at once.
const MaxPull = 1 << 20

type machineKey struct{}

// MachineOf is the machine that has signed the request.
func MachineOf(r *http.Request) string {
	name, _ := r.Context().Value(machineKey{}).(string)
	return name
}

// signedBy returns the request with the name of the machine whose key signed it, or
// answers why it is not taken. What nobody has signed shares the pace of where it comes
// from, so that strangers keep no machine waiting.
func (g *Gate) signedBy(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	instance := r.Header.Get(signed.Instance)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPull))
	if err != nil {
		reply.Problem(w, http.StatusRequestEntityTooLarge, "request not read", "send less", err)
		return nil, false
	}
	agent, known := g.Control.AgentOf(instance)
	err = signed.ErrNone
	if key, wrong := signed.Parse(agent.Key); known && wrong == nil {
		err = g.Seen.Check(r, key, time.Now(), body)
	}
	name := "from " + From(r)
	if err == nil {
		name = "machine " + instance
	}
	if !g.paced(w, name) {
		return nil, false
	}
	switch {
	case !known && instance != "":
		reply.Problem(w, http.StatusGone, "the machine is not known, or its time is over", "switch it off", nil)
		return nil, false
	case errors.Is(err, signed.ErrClock), errors.Is(err, signed.ErrBefore), errors.Is(err, signed.ErrReplay):
		reply.Problem(w, http.StatusConflict, "the signature is not taken",
			"sign anew, by the time of the header Scrimp-Time", err)
		return nil, false
	case err != nil:
		reply.Problem(w, http.StatusUnauthorized, "no valid signature", "only the machine's own agent may ask", err)
		return nil, false
	}
	r = r.WithContext(context.WithValue(r.Context(), machineKey{}, instance))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, true
}
