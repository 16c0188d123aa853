package client

import (
	"cmp"
	"fmt"
	"time"
)

// Role is a set of rights. Each role includes those before it.
type Role string

// The roles.
const (
	Nobody    Role = "none"      // sees nothing
	Viewer    Role = "viewer"    // sees the team's jobs, logs and costs
	Submitter Role = "submitter" // also submits jobs and ends them
	Operator  Role = "operator"  // also runs commands on their machines and backs up the server
	Admin     Role = "admin"     // also manages the rights of users
)

// MarshalText returns the name; an empty role is Nobody.
func (r Role) MarshalText() ([]byte, error) { return []byte(cmp.Or(r, Nobody)), nil }

// UnmarshalText parses a name; an empty one is Nobody, since a token may leave its role open.
func (r *Role) UnmarshalText(b []byte) error {
	switch role := cmp.Or(Role(b), Nobody); role {
	case Nobody, Viewer, Submitter, Operator, Admin:
		*r = role
		return nil
	default:
		return fmt.Errorf("role %q is none of viewer, submitter, operator, admin", role)
	}
}

// Everywhere stands for every team, including future ones, and for what belongs to no team.
const Everywhere = "*"

// Grant is a role in a team, or Everywhere.
type Grant struct {
	Team string `json:"team"`
	Role Role   `json:"role"`
}

// User is a person, or a program that acts for one.
type User struct {
	Name   string    `json:"name"`
	Grants []Grant   `json:"grants"`
	Off    bool      `json:"off,omitempty"` // disabled; the log keeps what they did
	Made   time.Time `json:"made"`          // wall time
	// Email is the address by which an identity provider knows the user; empty: the user signs in by token only.
	Email string `json:"email,omitempty"`
	// Grouped reports whether the grants follow the user's groups at the identity provider.
	Grouped bool `json:"grouped,omitempty"`
	// Erased reports whether the name and address are gone for ever: Name is erased-1, erased-2 and so on.
	Erased bool `json:"erased,omitempty"`
}

// Team owns jobs. If it lists projects, its jobs may use no others.
type Team struct {
	Name     string   `json:"name"`
	Projects []string `json:"projects,omitempty"`
	Disk     int64    `json:"disk_bytes,omitempty"`      // limit for its jobs on the server's disk; 0: no limit
	DiskUsed int64    `json:"disk_used_bytes,omitempty"` // present use, for a team with a limit
}

// Me describes the owner of the caller's token.
type Me struct {
	User    string     `json:"user"`
	Grants  []Grant    `json:"grants"`
	Best    Role       `json:"best"`              // highest role in any team
	Token   string     `json:"token,omitempty"`   // its ID
	Expires *time.Time `json:"expires,omitempty"` // null: never
}

// SetUser creates or changes a user. Null fields change nothing.
type SetUser struct {
	Grants []Grant `json:"grants,omitempty"` // replaces all grants, which then follow no group any more
	Off    *bool   `json:"off,omitempty"`
	Email  *string `json:"email,omitempty"` // by which an identity provider knows the user; empty: none
}

// EraseUser forgets the name and the address of a user for ever.
type EraseUser struct {
	DryRun bool `json:"dry_run,omitempty"` // only report what would happen
}

// Erasure is what an erasure does.
type Erasure struct {
	As     string `json:"as"`               // the name of the user from then on
	Tokens int    `json:"tokens"`           // live ones, which are revoked
	Jobs   int    `json:"jobs"`             // of the user that are not over
	Groups int    `json:"groups"`           // of the user that may begin more jobs, such as schedules
	Logged bool   `json:"logged,omitempty"` // an older release wrote the name into the log, whose files keep it
	DryRun bool   `json:"dry_run,omitempty"`
}

// SetTeam creates or changes a team.
type SetTeam struct {
	Projects []string `json:"projects"` // replaces all projects; empty: any project; null: unchanged
	// Disk is the limit for its jobs on the server's disk, in bytes; 0: no limit; null: unchanged.
	Disk *int64 `json:"disk_bytes,omitempty"`
}

// Token describes a token without its secret.
type Token struct {
	ID      string     `json:"id"`
	User    string     `json:"user"`
	Most    Role       `json:"most"` // upper bound of the user's role; none: no bound
	Note    string     `json:"note,omitempty"`
	Made    time.Time  `json:"made"`
	Expires time.Time  `json:"expires"`
	Revoked *time.Time `json:"revoked,omitempty"`
	Live    bool       `json:"live"`          // it opens the server
	Off     bool       `json:"off,omitempty"` // it is valid, and its user is switched off
}

// NewToken is a request for a token.
type NewToken struct {
	User string        `json:"user,omitempty"` // "": the caller
	Most Role          `json:"most"`           // none: the user's own role
	Life time.Duration `json:"life_ns,omitempty"`
	Note string        `json:"note,omitempty"`
}

// MadeToken is a new token with its secret, which the server shows once.
type MadeToken struct {
	Token
	Text string `json:"text"` // for the header Authorization: Bearer TEXT
}

// Audit is a page of the audit trail.
type Audit struct {
	Acts []Act  `json:"acts"`
	Next uint64 `json:"next,omitempty"` // value of after for the next page; 0: last page
}

// Act is an entry of the audit trail: what a user did or tried to do.
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
