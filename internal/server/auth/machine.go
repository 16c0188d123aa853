package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
	"scrimp/internal/wire/limits"
)

type machineKey struct{}

// MachineOf returns the machine that signed the request.
func MachineOf(r *http.Request) string {
	name, _ := r.Context().Value(machineKey{}).(string)
	return name
}

// signedBy returns the request with the name of the machine whose key signed it, or answers why the signature is not
// valid. Requests without a valid signature share the rate limit of their source address, so strangers cannot delay
// machines.
func (g *Gate) signedBy(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	instance, name := r.Header.Get(httpsig.Instance), sourceOf(r)
	agent, known := g.Control.AgentOf(instance)
	key, wrong := httpsig.Parse(agent.Key)
	known = known && wrong == nil
	var body []byte
	err := httpsig.ErrNone
	if known { // never read the body of an unknown sender
		attribute(r, g.AgentBodies, name)
		var ok bool
		if body, ok = reply.Text(w, r, limits.Body(reflect.TypeFor[api.Pull]())); !ok {
			return nil, false
		}
		if err = g.Seen.Check(r, key, time.Now(), body); err == nil {
			name = "machine " + instance
		}
	}
	if !g.allow(w, name, err == nil) {
		return nil, false
	}
	switch {
	case !known && instance != "":
		reply.Problem(w, http.StatusGone, "the machine is unknown, or its lease has ended", "switch it off", nil)
		return nil, false
	case errors.Is(err, httpsig.ErrClock), errors.Is(err, httpsig.ErrBefore), errors.Is(err, httpsig.ErrReplay):
		reply.Problem(w, http.StatusConflict, "the signature is not valid",
			"sign again, by the time of the header Scrimp-Time", err)
		return nil, false
	case err != nil:
		reply.Problem(w, http.StatusUnauthorized, "no valid signature", "only the machine's own agent may ask", err)
		return nil, false
	}
	r = r.WithContext(context.WithValue(r.Context(), machineKey{}, instance))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r, true
}
