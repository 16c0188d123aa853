package api

import (
	"time"

	"scrimp/internal/identity"
)

// Who may do what, and who did:
//
//	GET    /v1/me                        -> Me
//	GET    /v1/users                     -> []identity.User
//	PUT    /v1/users/{name}   SetUser    -> identity.User
//	GET    /v1/teams                     -> []identity.Team
//	PUT    /v1/teams/{name}   SetTeam    -> identity.Team
//	GET    /v1/tokens                    -> []Token
//	POST   /v1/tokens         NewToken   -> MadeToken
//	DELETE /v1/tokens/{id}               -> 204
//	GET    /v1/audit?after=N             -> Audit

// Me says whose token the caller shows.
type Me struct {
	User    string           `json:"user"`
	Grants  []identity.Grant `json:"grants"`
	Best    identity.Role    `json:"best"`              // highest role anywhere
	Token   string           `json:"token,omitempty"`   // its ID
	Expires *time.Time       `json:"expires,omitempty"` // null: never
}

// SetUser makes a user or changes one. What is null stays as it is.
type SetUser struct {
	Grants []identity.Grant `json:"grants,omitempty"` // all of them
	Off    *bool            `json:"off,omitempty"`
}

// SetTeam makes a team or changes it.
type SetTeam struct {
	Projects []string `json:"projects"` // all of them; none: any project
}

// Token is one as it is listed: without what opens anything.
type Token struct {
	ID      string        `json:"id"`
	User    string        `json:"user"`
	Most    identity.Role `json:"most"` // the user's role is cut to it; none: it is not
	Note    string        `json:"note,omitempty"`
	Made    time.Time     `json:"made"`
	Expires time.Time     `json:"expires"`
	Revoked *time.Time    `json:"revoked,omitempty"`
	Live    bool          `json:"live"`
}

// NewToken asks for a token.
type NewToken struct {
	User string        `json:"user,omitempty"` // "": the caller
	Most identity.Role `json:"most"`           // none: the user's own role
	Life time.Duration `json:"life_ns,omitempty"`
	Note string        `json:"note,omitempty"`
}

// MadeToken is shown once.
type MadeToken struct {
	Token
	Text string `json:"text"` // shown in the header Authorization: Bearer TEXT
}

// Audit is a page of the audit trail.
type Audit struct {
	Acts []Act  `json:"acts"`
	Next uint64 `json:"next,omitempty"` // after of the next page; 0: this is the last
}

// Act is a line of it.
type Act struct {
	Event uint64 `json:"event"`
	identity.Act
}
