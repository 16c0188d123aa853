//go:build !local

package setting

import (
	"cmp"
	"fmt"
	"math/big"
	"path"
	"regexp"
	"slices"
)

// Fleet is a set of types and zones from which EC2 picks the machines with the most capacity, at a bounded price. It
// has one offer per capacity.
type Fleet struct {
	Name  string   `yaml:"name"`
	Types []string `yaml:"types,omitempty"` // among the engine's, also as patterns; none: all
	// Within is how much more than the cheapest a machine may cost, in percent, such as 10%; empty means 10%.
	Within string `yaml:"within,omitempty"`

	// Bound is Within as a factor of the cheapest price, such as 1.1.
	Bound *big.Rat `yaml:"-"`
}

var (
	fleetName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)
	percent   = regexp.MustCompile(`^([0-9]{1,3})%$`)
)

// AnyZone represents all zones of the subnets.
const AnyZone = "any"

// fleets validates the configured fleets.
func (w *With) fleets() error {
	names := map[string]bool{}
	for n := range w.Fleets {
		f := &w.Fleets[n]
		at := fmt.Sprintf("with: fleets: %s", cmp.Or(f.Name, fmt.Sprint("the ", n+1, ".")))
		m := percent.FindStringSubmatch(cmp.Or(f.Within, "10%"))
		switch {
		case !fleetName.MatchString(f.Name):
			return fmt.Errorf("%s: name is %q: write small letters, digits and dashes, such as a10g", at, f.Name)
		case names[f.Name]:
			return fmt.Errorf("%s: there are two of that name: each has its own", at)
		case m == nil:
			return fmt.Errorf("%s: within is %q: write how much more than the cheapest a machine may cost, such as 10%%",
				at, f.Within)
		}
		names[f.Name] = true
		f.Bound, _ = new(big.Rat).SetString(m[1])
		f.Bound = f.Bound.Quo(f.Bound.Add(f.Bound, big.NewRat(100, 1)), big.NewRat(100, 1))
		for _, t := range f.Types {
			if _, err := path.Match(t, "a.b"); err != nil || !typeName.MatchString(t) {
				return fmt.Errorf("%s: types has %q: write an instance type, such as g5.xlarge, or a pattern, such as g5.*", at, t)
			}
		}
	}
	return nil
}

// Wants reports whether a type belongs to the fleet.
func (f *Fleet) Wants(kind string) bool {
	return len(f.Types) == 0 ||
		slices.ContainsFunc(f.Types, func(p string) bool { ok, _ := path.Match(p, kind); return ok })
}
