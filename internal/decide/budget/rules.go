package budget

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// Rules are the admin's settings: the limits, sorted by name, and the required tags.
type Rules struct {
	Limits []Limit `json:"limits"`
	Tags   Tags    `json:"tags,omitempty"`
	// Shares lists the teams whose members may use each other's machines, sorted.
	Shares []string `json:"shares,omitempty"`
	// Fair says how teams share the queue; nil: the queue does not regard teams.
	Fair *Fair `json:"fair,omitempty"`
}

// Fair is how teams share the queue, in dollars. Package fair checks and applies it.
type Fair struct {
	HalfLife time.Duration `json:"half_life_ns"` // in which what a team spent counts half
	Teams    []FairTeam    `json:"teams"`        // teams with a setting, by name; any other has the weight 1
}

// FairTeam is the setting of one team.
type FairTeam struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"` // above 0; its share is its part of the sum of weights
	// Guarantee is the dollars an hour that the team may have running before others get beyond their share; 0: none.
	Guarantee money.Rate `json:"guarantee,omitempty"`
	// Borrow is the dollars an hour beyond its share at which no job of the team starts; nil: no limit.
	Borrow *money.Rate `json:"borrow,omitempty"`
}

// Tags are the required tags with their allowed values; none: any value.
type Tags map[string][]string

// Check returns an error for the first tag, by name, that is missing or has a value that is not allowed. The team
// and project fields of a job file count as the tags team and project.
func (t Tags) Check(o ledger.Owner) error {
	has, fields := o.Labels(), map[string]string{labelTeam: o.Team, labelProject: o.Project}
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := cmp.Or(fields[name], has[name])
		allowed := t[name]
		switch {
		case value == "":
			return fmt.Errorf("%s is missing: %s", label(name), choices(allowed))
		case len(allowed) > 0 && !slices.ContainsFunc(allowed, func(v string) bool { return identity.Same(v, value) }):
			return fmt.Errorf("%s is %q: %s", label(name), value, choices(allowed))
		}
	}
	return nil
}

// Tags that are fields of a job file, besides those of the ledger.
const (
	labelTeam    = "team"
	labelProject = "project"
)

// label returns the name that a job file uses.
func label(name string) string {
	if slices.Contains([]string{ledger.LabelEnvironment, ledger.LabelModelVersion, labelTeam, labelProject}, name) {
		return name
	}
	return "tag " + name
}

func choices(allowed []string) string {
	if len(allowed) == 0 {
		return "write any value"
	}
	return "write " + strings.Join(allowed, ", ")
}
