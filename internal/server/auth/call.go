package auth

import (
	"context"
	"net"
	"net/http"
	"net/netip"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
)

// OwnerName is the name of the data folder's owner in the audit trail.
const OwnerName = "owner"

// Call is what the server knows about a request while it serves it.
type Call struct {
	Caller  identity.Caller
	Act     identity.Act
	Written bool // the act is in the log
}

type callKey struct{}

// CallOf returns the call of the request. Handlers add details for the audit trail to it.
func CallOf(r *http.Request) *Call {
	c, _ := r.Context().Value(callKey{}).(*Call)
	if c == nil {
		c = &Call{}
	}
	return c
}

// As returns the request as one of a user whom the server itself has authenticated, without a token. The audit trail
// names them; they have no rights.
func (g *Gate) As(r *http.Request, user string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, &Call{Caller: identity.Caller{User: user},
		Act: identity.Act{Who: user, From: From(r), Route: r.Pattern}}))
}

// CallerOf returns who sends the request.
func CallerOf(r *http.Request) identity.Caller { return CallOf(r).Caller }

// socketKey marks requests that came through the socket of the data folder.
type socketKey struct{}

// OnSocket marks a request as received through the socket of the data folder.
func OnSocket(ctx context.Context) context.Context { return context.WithValue(ctx, socketKey{}, true) }

// BySocket reports whether the request came through that socket.
func BySocket(r *http.Request) bool { return r.Context().Value(socketKey{}) != nil }

// From returns the source address of the request, as the audit trail shows it.
func From(r *http.Request) string {
	if BySocket(r) {
		return "socket"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// sourceOf returns the key for the rate limit of a caller without a known token: the IP address, or for IPv6 the /64
// network, because one owner of such a network has more addresses than we can track.
func sourceOf(r *http.Request) string {
	from := From(r)
	if a, err := netip.ParseAddr(from); err == nil && a.Unmap().Is6() {
		if p, err := a.Prefix(64); err == nil {
			from = p.String()
		}
	}
	return "from " + from
}

// Sees reports whether the caller may see the job.
func Sees(c identity.Caller, j *core.Job) bool {
	return c.Role(j.Terms().Owner.Team) >= identity.Viewer
}

// SeesTeam reports whether the caller may see a team, which exists or is of a server that has no teams yet.
func (g *Gate) SeesTeam(r *http.Request, team string) bool {
	return CallerOf(r).Role(team) >= identity.Viewer && (g.People.HasTeam(team) || !g.People.HasTeams())
}

// Rules reports whether the caller may act for other users.
func Rules(c identity.Caller) bool { return c.Role(identity.Everywhere) >= identity.Admin }

// Actor returns the name of a user in events.
func Actor(user string) string {
	if user == OwnerName {
		return "user"
	}
	return "user:" + user
}
