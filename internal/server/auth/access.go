package auth

import "scrimp/internal/lib/identity"

// Scope says for which teams a route requires its role, or what else grants access.
type Scope int

// The scopes of routes.
const (
	Open       Scope = iota // everybody, without a token
	AnyTeam                 // the role in one team is enough; the response omits what other teams own
	AllTeams                // the role for all teams
	OfJob                   // the role in the team of the job {id}
	OfOwnJob                // OfJob for a user's own job; for jobs of others, the role operator in the job's team
	Bootstraps              // the one-time token with which a machine registers
	Machines                // the signature of a machine's key
	Attempts                // the token of a task
	Joiners                 // the token with which a user's own machine joins
)

// Access is who may use a route, and how the audit trail treats it.
type Access struct {
	Route string        // "GET /v1/jobs"
	Role  identity.Role // lowest role that may call it; Nobody for open routes and those of agents
	Scope Scope
	Reads bool // changes nothing, so the audit trail has only refusals
	// Probe marks health checks. They have a rate limit of their own, so that strangers with other requests cannot
	// starve the supervisor that restarts an unhealthy server.
	Probe  bool
	Stream bool // its response may be large or endless
	// Archive marks a response that the server builds while it sends it: a tar file or a ledger.
	Archive bool
}
