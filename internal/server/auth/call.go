package auth

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
)

// OwnerName is what the audit trail calls who holds the data folder.
const OwnerName = "owner"

// Call is what is known of a request while it is served.
type Call struct {
	Caller  identity.Caller
	Act     identity.Act
	Written bool // the act is on record
}

type callKey struct{}

// CallOf is the call that the request is; handlers say there what it is about.
func CallOf(r *http.Request) *Call {
	c, _ := r.Context().Value(callKey{}).(*Call)
	if c == nil {
		c = &Call{}
	}
	return c
}

// CallerOf is who asks.
func CallerOf(r *http.Request) identity.Caller { return CallOf(r).Caller }

// socketKey marks requests that came through the socket of the data folder.
type socketKey struct{}

// OnSocket marks what comes through the socket of the data folder.
func OnSocket(ctx context.Context) context.Context { return context.WithValue(ctx, socketKey{}, true) }

// BySocket reports whether the request came that way.
func BySocket(r *http.Request) bool { return r.Context().Value(socketKey{}) != nil }

// From is where the request comes from, as the audit trail names it.
func From(r *http.Request) string {
	if BySocket(r) {
		return "socket"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// sourceOf is whose pace somebody has who shows no token that is known: where they come from, of IPv6 the
// network, since one who has it has more addresses than are worth counting.
func sourceOf(r *http.Request) string {
	from := From(r)
	if a, err := netip.ParseAddr(from); err == nil && a.Unmap().Is6() {
		if p, err := a.Prefix(64); err == nil {
			from = p.String()
		}
	}
	return "from " + from
}

// Sees reports whether the caller may know of the job.
func Sees(c identity.Caller, j *core.Job) bool {
	return c.Role(j.Terms().Owner.Team) >= identity.Viewer
}

// Rules reports whether the caller may do what is for users other than itself.
func Rules(c identity.Caller) bool { return c.Role(identity.Everywhere) >= identity.Admin }

// Actor is how events name a user.
func Actor(user string) string {
	if user == OwnerName {
		return "user"
	}
	return "user:" + user
}
