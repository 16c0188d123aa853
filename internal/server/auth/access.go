package auth

import "scrimp/internal/lib/identity"

// Scope is for what a role is needed, or what else opens a route.
type Scope int

// The scopes of routes.
const (
	Open       Scope = iota // everybody, without a token
	Anywhere                // the role in one team is enough; what others own is left out
	Everywhere              // the role must hold for all teams
	OfJob                   // the role in the team of the job {id}
	OfOwnJob                // the same, of a user's own job; of a job of others it takes an operator of its team
	Bootstraps              // the token that a machine registers with, once
	Machines                // the signature of a machine's key
	Attempts                // the token that comes with a task
	Joiners                 // the token that a machine of one's own joins with
)

// Access is who may use a route, and what is put on record of that.
type Access struct {
	Route string        // "GET /v1/jobs"
	Role  identity.Role // the least that is needed; Nobody for open routes and those of agents
	Scope Scope
	Reads bool // changes nothing, so that only refusals are on record
	// Probe says that it is asked whether the server is well, by whoever starts it again where it is not: strangers who
	// ask for other things take nothing of its pace.
	Probe  bool
	Stream bool // its answer may have no end, or is large
	// Archive says that the answer is a file which is made as it is sent: a tar file, or a ledger.
	Archive bool
}
