// Package identity holds who may do what: users, the teams and projects that
// they work for, their roles there, and the tokens they show. A Book is made of
// Changes alone, so that a log of them is the whole of it.
package identity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody may do. Each includes those before it.
type Role int

// The roles. Nobody has none by default: a user without a grant sees nothing.
const (
	Nobody    Role = iota
	Viewer         // sees the team's jobs, logs and costs
	Submitter      // and submits jobs, and ends them
	Operator       // and runs commands on their machines, and backs the server up
	Admin          // and says who may do what
)

var roleNames = []string{"none", "viewer", "submitter", "operator", "admin"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole reads one of viewer, submitter, operator, admin.
func ParseRole(text string) (Role, error) {
	if n := slices.Index(roleNames, text); n > 0 {
		return Role(n), nil
	}
	return Nobody, fmt.Errorf("role %q is none of %s", text, strings.Join(roleNames[1:], ", "))
}

// MarshalJSON writes the name.
func (r Role) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads the name; none is a role here, since a token may leave it open.
func (r *Role) UnmarshalJSON(b []byte) (err error) {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("read a role: %w", err)
	}
	if text == "" || text == Nobody.String() {
		*r = Nobody
		return nil
	}
	*r, err = ParseRole(text)
	return err
}

// Everywhere stands for every team, those that are yet to come too, and for
// what belongs to none.
const Everywhere = "*"

// Grant is a role in one team, or Everywhere.
type Grant struct {
	Team string `json:"team"`
	Role Role   `json:"role"`
}

// ParseGrant reads TEAM=ROLE, or a ROLE that holds everywhere.
func ParseGrant(text string) (Grant, error) {
	team, name, ok := strings.Cut(text, "=")
	if !ok {
		team, name = Everywhere, text
	}
	role, err := ParseRole(name)
	if err != nil {
		return Grant{}, err
	}
	if team != Everywhere {
		if err := checkName("team", "grants", team); err != nil {
			return Grant{}, err
		}
	}
	return Grant{team, role}, nil
}

func (g Grant) String() string { return g.Team + "=" + g.Role.String() }

// checkName holds names to what needs no quoting in a path, a table or a query.
func checkName(what, field, name string) error {
	if fix := WrongName(name); fix != "" {
		return Wrong{field, fmt.Sprintf("%s %q is no name", what, name), fix}
	}
	return nil
}

// Wrong is a field of a change that cannot be, and how to fix it.
type Wrong struct{ Field, Cause, Fix string }

func (w Wrong) Error() string { return w.Cause + ": " + w.Fix }

// Caller is who asks. The zero Caller is nobody.
type Caller struct {
	User   string
	Token  string // its ID; "" for who holds the data folder
	Grants []Grant
	Most   Role // limit of the token; Nobody: that of the user
}

// Owner is who holds the server's data folder: there is nothing to keep from them.
func Owner(name string) Caller { return Caller{User: name, Grants: []Grant{{Everywhere, Admin}}} }

// Role is the highest that the caller has in a team; Everywhere asks for one
// that holds in all. A job of no team is seen by those alone whose role holds everywhere.
func (c Caller) Role(team string) Role {
	best := Nobody
	for _, g := range c.Grants {
		if g.Team == Everywhere || g.Team == team {
			best = max(best, g.Role)
		}
	}
	return c.limit(best)
}

// Best is the highest role that the caller has anywhere.
func (c Caller) Best() Role {
	best := Nobody
	for _, g := range c.Grants {
		best = max(best, g.Role)
	}
	return c.limit(best)
}

func (c Caller) limit(r Role) Role {
	if c.Most != Nobody {
		return min(r, c.Most)
	}
	return r
}
