// Package identity holds who may do what: users, the teams and projects that they work for, their roles there, and the
// tokens they present. A Book results from Changes alone, so a log of the changes is a complete copy of it.
package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Role is what somebody may do. Each role includes those before it.
type Role int

// The roles. The default is Nobody: a user without a grant sees nothing.
const (
	Nobody    Role = iota
	Viewer         // sees the team's jobs, logs and costs
	Submitter      // also submits jobs, and ends them
	Operator       // also runs commands on their machines, and backs up the server
	Admin          // also decides who may do what
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
	return Nobody, fmt.Errorf("role %q does not exist: write one of %s", text, strings.Join(roleNames[1:], ", "))
}

// MarshalJSON writes the name.
func (r Role) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads the name. It accepts none as a role, because a token may leave its role open.
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

// Everywhere stands for every team, future ones included, and for what belongs to no team.
const Everywhere = "*"

// Grant is a role in one team, or Everywhere.
type Grant struct {
	Team string `json:"team"`
	Role Role   `json:"role"`
}

// ParseGrant reads TEAM=ROLE, or a ROLE that applies everywhere.
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

// checkName restricts names to characters that need no quoting in a path, a table or a query.
func checkName(what, field, name string) error {
	if fix := WrongName(name); fix != "" {
		return Wrong{field, fmt.Sprintf("%s %q is not a valid name", what, name), fix}
	}
	return nil
}

// Wrong is an invalid field of a change, and how to fix it.
type Wrong struct{ Field, Cause, Fix string }

func (w Wrong) Error() string { return w.Cause + ": " + w.Fix }

// Caller is the author of a request. The zero Caller has no rights.
type Caller struct {
	User   string
	Token  string // its ID; "": the owner of the data folder
	Grants []Grant
	Most   Role // limit of the token; Nobody: no limit beyond the user's own role
}

// Owner returns the caller who owns the server's data folder: nothing can be hidden from them.
func Owner(name string) Caller { return Caller{User: name, Grants: []Grant{{Everywhere, Admin}}} }

// Role returns the caller's highest role in a team. Everywhere asks for a role that applies to all teams: a job of no
// team is visible only to callers with such a role.
func (c Caller) Role(team string) Role {
	best := Nobody
	for _, g := range c.Grants {
		if g.Team == Everywhere || g.Team == team {
			best = max(best, g.Role)
		}
	}
	return c.limit(best)
}

// Best returns the caller's highest role in any team.
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

// Highest returns the highest role of each team among grants, in the order of the teams' names.
func Highest(grants []Grant) []Grant {
	best := map[string]Role{}
	for _, g := range grants {
		best[g.Team] = max(best[g.Team], g.Role)
	}
	list := make([]Grant, 0, len(best))
	for _, team := range slices.Sorted(maps.Keys(best)) {
		list = append(list, Grant{team, best[team]})
	}
	return list
}
