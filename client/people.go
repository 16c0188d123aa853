package client

import (
	"cmp"
	"fmt"
	"time"
)

// Role is what somebody may do. Each includes those before it.
type Role string

// The roles.
const (
	Nobody    Role = "none"      // sees nothing
	Viewer    Role = "viewer"    // sees the team's jobs, logs and costs
	Submitter Role = "submitter" // and submits jobs, and ends them
	Operator  Role = "operator"  // and runs commands on their machines, and backs the server up
	Admin     Role = "admin"     // and says who may do what
)

// MarshalText writes the name; one that is empty is Nobody.
func (r Role) MarshalText() ([]byte, error) { return []byte(cmp.Or(r, Nobody)), nil }

// UnmarshalText reads a name; an empty one is Nobody, since a token may leave its role open.
func (r *Role) UnmarshalText(b []byte) error {
	switch role := cmp.Or(Role(b), Nobody); role {
	case Nobody, Viewer, Submitter, Operator, Admin:
		*r = role
		return nil
	default:
		return fmt.Errorf("role %q is none of viewer, submitter, operator, admin", role)
	}
}

// Everywhere stands for every team, those that are yet to come too, and for what belongs to none.
const Everywhere = "*"

// Grant is a role in one team, or Everywhere.
type Grant struct {
	Team string `json:"team"`
	Role Role   `json:"role"`
}

// User is a person or a program that acts for one.
type User struct {
	Name   string    `json:"name"`
	Grants []Grant   `json:"grants"`
	Off    bool      `json:"off,omitempty"` // may do nothing; what they did stays on record
	Made   time.Time `json:"made"`          // wall time
}

// Team owns jobs. A team that names projects has no others.
type Team struct {
	Name     string   `json:"name"`
	Projects []string `json:"projects,omitempty"`
	Disk     int64    `json:"disk_bytes,omitempty"`      // that its jobs may have on the server's disk; 0: no limit
	DiskUsed int64    `json:"disk_used_bytes,omitempty"` // of a team with a limit: what they have
}

// Me says whose token the caller shows.
type Me struct {
	User    string     `json:"user"`
	Grants  []Grant    `json:"grants"`
	Best    Role       `json:"best"`              // highest role anywhere
	Token   string     `json:"token,omitempty"`   // its ID
	Expires *time.Time `json:"expires,omitempty"` // null: never
}

// SetUser makes a user or changes one. What is null stays as it is.
type SetUser struct {
	Grants []Grant `json:"grants,omitempty"` // all of them
	Off    *bool   `json:"off,omitempty"`
}

// SetTeam makes a team or changes it.
type SetTeam struct {
	Projects []string `json:"projects"` // all of them; empty: any project, null: as they were
	// Disk is how many bytes its jobs may have on the server's disk; 0: no limit, null: as it was
	Disk *int64 `json:"disk_bytes,omitempty"`
}

// Token is one as it is listed: without what opens anything.
type Token struct {
	ID      string     `json:"id"`
	User    string     `json:"user"`
	Most    Role       `json:"most"` // the user's role is cut to it; none: it is not
	Note    string     `json:"note,omitempty"`
	Made    time.Time  `json:"made"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
	Live    bool       `json:"live"`
}

// NewToken asks for a token.
type NewToken struct {
	User string        `json:"user,omitempty"` // "": the caller
	Most Role          `json:"most"`           // none: the user's own role
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

// Act is a line of the audit trail: who did what, or tried to.
type Act struct {
	Event   uint64    `json:"event"`
	At      time.Time `json:"at"` // wall time
	Who     string    `json:"who"`
	Token   string    `json:"token,omitempty"` // its ID
	From    string    `json:"from,omitempty"`  // address, or socket
	Route   string    `json:"route"`
	Object  string    `json:"object,omitempty"`
	Outcome string    `json:"outcome"`          // done, refused, failed
	Detail  string    `json:"detail,omitempty"` // never a secret
}
