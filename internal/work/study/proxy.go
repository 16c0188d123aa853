package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
)

// A Proxy is a cheaper training on which a study searches: with part of the data, at a lower resolution, or with fewer
// epochs. The best configurations are then promoted: trained anew without its settings, from the reserved part of the
// budget.
type Proxy struct {
	Set     map[string]string `json:"set,omitempty"`     // values of parameters, in JSON
	Env     map[string]string `json:"env,omitempty"`     // environment variables
	Max     float64           `json:"max,omitempty"`     // of the fidelity; 0: that of a full training
	Promote int               `json:"promote"`           // highest number of promoted configurations
	Reserve float64           `json:"reserve,omitempty"` // part of each limit kept for them; 0: DefaultReserve
}

// Limits of proxies.
const (
	DefaultReserve = 0.5
	LeastReserve   = 0.05
	MostReserve    = 0.95
	MaxPromote     = 100
	maxSettings    = 100 // of Set, and of Env
	// thousand is the precision with which money is reserved.
	thousand = 1000
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// Length returns the fidelity of a trial: Max is where its training ends.
func (s *Spec) Length(promoted bool) Fidelity {
	f := s.Fidelity
	if s.Proxy != nil && !promoted && s.Proxy.Max > 0 {
		f.Max = s.Proxy.Max
	}
	return f
}

// Standin returns the variables that a trial of the proxy gets besides its values.
func (s *Spec) Standin(promoted bool) map[string]string {
	if s.Proxy == nil || promoted {
		return nil
	}
	return s.Proxy.Env
}

// Share returns the part of each limit that is reserved for promoted trials; 0 without a proxy.
func (s *Spec) Share() float64 {
	switch {
	case s.Proxy == nil:
		return 0
	case s.Proxy.Reserve == 0:
		return DefaultReserve
	}
	return s.Proxy.Reserve
}

// Reserved returns the part of a budget that is reserved for promoted trials.
func (s *Spec) Reserved(budget money.Amount) money.Amount {
	return budget.Times(int(math.Round(s.Share() * thousand))).Over(thousand)
}

// checkProxy returns the error of an invalid proxy.
func (s *Spec) checkProxy() error {
	p := s.Proxy
	switch {
	case p == nil:
		return nil
	case s.Final:
		return fmt.Errorf("the best configurations of a proxy are trained in full anyway: leave final out")
	case len(p.Set)+len(p.Env) == 0 && (p.Max == 0 || p.Max == s.Fidelity.Max):
		return fmt.Errorf("it changes nothing: say how it trains cheaper, such as set: {data_fraction: 0.1}, env or max")
	case p.Promote < 1 || p.Promote > MaxPromote:
		return fmt.Errorf("promote is %d: give 1 to %d configurations to train in full", p.Promote, MaxPromote)
	case p.Reserve != 0 && !(p.Reserve >= LeastReserve && p.Reserve <= MostReserve):
		return fmt.Errorf("reserve is %g: give the part of the budget for full trainings, from %g to %g", p.Reserve,
			LeastReserve, MostReserve)
	case p.Max != 0 && s.Fidelity.Name == "":
		return fmt.Errorf("max is %g, and the study has no fidelity: write fidelity beside it", p.Max)
	case p.Max != 0 && !(p.Max >= s.Fidelity.Min && p.Max <= s.Fidelity.Max):
		return fmt.Errorf("max is %g: give a length from the fidelity's min %g to its max %g", p.Max, s.Fidelity.Min,
			s.Fidelity.Max)
	}
	most, err := s.size()
	if err != nil {
		return nil // Check says so
	}
	if s.Trials > 0 {
		most = min(most, s.Trials)
	}
	if p.Promote > most {
		return fmt.Errorf("promote is %d, and at most %d configurations train on the proxy: promote at most as many, or let "+
			"more of them train", p.Promote, most)
	}
	return s.checkSettings()
}

// checkSettings checks the values that a proxy sets.
func (s *Spec) checkSettings() error {
	p := s.Proxy
	if len(p.Set) > maxSettings || len(p.Env) > maxSettings {
		return fmt.Errorf("set has %d entries and env %d: give at most %d each", len(p.Set), len(p.Env), maxSettings)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		value := p.Set[name]
		switch {
		case !paramName.MatchString(name):
			return fmt.Errorf("set has %.40q: a name begins with a letter and has letters, digits, _, . and - only", name)
		case len(value) > MaxBytes || !json.Valid([]byte(value)):
			return fmt.Errorf("set.%s is no value of at most %d bytes", name, MaxBytes)
		}
		for i := range s.Params {
			q := &s.Params[i]
			switch {
			case q.Name == name && q.count() != 1:
				return fmt.Errorf("set.%s is a parameter that the study searches: set others, or one with a single value", name)
			case q.Name == name && same(q.text(q.at(0)), unquoted(value)):
				return fmt.Errorf("set.%s is %.40s, as in a full training: set a cheaper value, or leave it out", name,
					unquoted(value))
			case q.Name != name && envName(q.Name) == envName(name):
				return fmt.Errorf("set.%s and the parameter %s have the same variable: rename one", name, q.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		switch {
		case !variable.MatchString(name):
			return fmt.Errorf("env has %.40q: a variable has letters, digits and _ only", name)
		case strings.HasPrefix(name, "SCRIMP_"):
			return fmt.Errorf("env.%s: scrimp sets variables with this prefix: rename it", name)
		case len(p.Env[name]) > MaxBytes || strings.ContainsRune(p.Env[name], 0):
			return fmt.Errorf("env.%s is no text of at most %d bytes", name, MaxBytes)
		}
	}
	return nil
}

// same reports whether two values are the same text or the same number.
func same(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, no := strconv.ParseFloat(b, 64)
	return a == b || err == nil && no == nil && x == y
}

// Texts formats the settings of a proxy, by name.
func (p *Proxy) Texts() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		list = append(list, name+"="+unquoted(p.Set[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		list = append(list, name+"="+p.Env[name])
	}
	return list
}

// Text returns the value that a proxy gives a parameter; false: it leaves the parameter as it is.
func (p *Proxy) Text(name string) (string, bool) {
	value, is := p.Set[name]
	return unquoted(value), is
}

// InFull returns the value of the d-th parameter in a full training of a trial that the proxy trained with the given
// one.
func (s *Spec) InFull(d int, text string) string {
	p := &s.Params[d]
	if s.Proxy == nil || p.count() != 1 {
		return text
	}
	if by, is := s.Proxy.Text(p.Name); is && by == text {
		return p.text(p.at(0))
	}
	return text
}
