//go:build !local

package setting

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// Reservation is a configured capacity reservation: an On-Demand Capacity Reservation or a Capacity Block for ML.
type Reservation struct {
	ID   string `yaml:"id"`             // all: each active one of the account
	Rate string `yaml:"rate,omitempty"` // per hour of one machine; empty: the price list's, unknown for a block
	Paid string `yaml:"paid,omitempty"` // for all of a block
	Team string `yaml:"team,omitempty"` // who pays for unused hours; empty: nobody

	HourRate   *money.Rate   `yaml:"-"` // the parsed Rate; nil: not given
	PaidAmount *money.Amount `yaml:"-"` // the parsed Paid; nil: not given
}

// Reservations are the configured reservations: ids, ids with costs, or all.
type Reservations []Reservation

// All represents each active reservation of the account.
const All = "all"

// UnmarshalYAML also accepts a plain "all".
func (l *Reservations) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = Reservations{{ID: n.Value}}
		return nil
	}
	return n.Decode((*[]Reservation)(l))
}

var reservationFields = []string{"id", "rate", "paid", "team"}

// UnmarshalYAML also accepts a plain id.
func (r *Reservation) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		r.ID = n.Value
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // a custom decoder is not strict by itself
		if name := n.Content[i].Value; !slices.Contains(reservationFields, name) {
			return fmt.Errorf("line %d: reservations: %s is not known: a reservation is its id, or has id, rate, paid and team",
				n.Content[i].Line, name)
		}
	}
	type plain Reservation
	return n.Decode((*plain)(r))
}

var reservationID = regexp.MustCompile(`^cr-[0-9a-f]{8,17}$`)

// holds validates the configured reservations.
func (w *With) holds() error {
	seen := map[string]bool{}
	for n := range w.Reservations {
		r := &w.Reservations[n]
		at := "with: reservations: " + cmp.Or(r.ID, fmt.Sprint("the ", n+1, "."))
		switch fix := identity.WrongName(r.Team); {
		case strings.HasPrefix(r.ID, "cb-"):
			return fmt.Errorf("%s is the id of a Capacity Block: write the id of its reservation, such as cr-0a1b2c3d4e5f67890 "+
				"(aws ec2 describe-capacity-blocks)", at)
		case r.ID != All && !reservationID.MatchString(r.ID):
			return fmt.Errorf("%s: id is %q: write one such as cr-0a1b2c3d4e5f67890, or all", at, r.ID)
		case seen[r.ID]:
			return fmt.Errorf("%s appears twice: write it once", at)
		case r.ID == All && (r.Rate != "" || r.Paid != ""):
			return fmt.Errorf("%s: rate and paid need the id of one reservation: add an entry with its id beside all", at)
		case r.Rate != "" && r.Paid != "":
			return fmt.Errorf("%s has rate and paid: write one of them, the price of a machine's hour or the amount paid for "+
				"the whole "+
				"block", at)
		case r.Team != "" && fix != "":
			return fmt.Errorf("%s: team is %q: %s", at, r.Team, fix)
		}
		seen[r.ID] = true
		if err := r.costs(); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// costs parses the configured price.
func (r *Reservation) costs() error {
	if r.Rate != "" {
		rate, err := money.ParseRate(r.Rate)
		if err != nil || rate < 0 {
			return fmt.Errorf("rate is %q: write the dollars of an hour of one machine, such as 31.464", r.Rate)
		}
		r.HourRate = &rate
	}
	if r.Paid != "" {
		paid, err := money.Parse(r.Paid)
		if err != nil || paid.Sign() < 0 {
			return fmt.Errorf("paid is %q: write the dollars that the whole block cost, such as 5285.95", r.Paid)
		}
		r.PaidAmount = &paid
	}
	return nil
}

// SettingOf returns the settings of a reservation; nil if it is not wanted.
func (w *With) SettingOf(id string) (set *Reservation) {
	for n := range w.Reservations {
		if r := &w.Reservations[n]; r.ID == id || r.ID == All && set == nil {
			set = r
		}
	}
	return set
}
