// Package setting reads the settings of an ssh engine, and makes the tokens with which its machines join.
package setting

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// With holds the settings under with of an ssh engine.
type With struct {
	// Rate is the price of an hour of one machine in use, including the marginal part.
	Rate     money.Rate        `yaml:"rate"`
	Marginal money.Rate        `yaml:"marginal"` // part of rate that only a used hour costs, such as power
	Currency money.Currency    `yaml:"currency"` // empty: USD
	Team     string            `yaml:"team"`     // team that pays for unused hours; empty: none
	Config   string            `yaml:"config"`   // ssh's configuration file; empty: the user's own
	Folder   string            `yaml:"folder"`   // on each machine; empty: /var/lib/scrimp for root, ~/.scrimp for others
	Programs map[string]string `yaml:"programs"` // path of this program for other systems, such as linux/arm64
	Hosts    []Machine         `yaml:"hosts"`
}

// Machine is one computer.
type Machine struct {
	SSH      string      `yaml:"ssh"`  // ssh's destination: user@host, or a name in its configuration
	Join     string      `yaml:"join"` // name of a machine that connects to the server itself, instead of ssh
	Name     string      `yaml:"name"` // empty: the host of ssh
	Rate     *money.Rate `yaml:"rate"` // nil: the engine's
	Marginal *money.Rate `yaml:"marginal"`
	Address  string      `yaml:"address"` // address for other machines; empty: the one that ssh used
	// What jobs may use of the machine; unset: everything that it has.
	CPUs         int        `yaml:"cpus"`
	Memory       size.Bytes `yaml:"memory"`
	Accelerator  string     `yaml:"accelerator"` // kind of accelerator
	Accelerators int        `yaml:"accelerators"`
	Speed        float64    `yaml:"speed"` // relative to the machine for which jobs state their work
}

const hasWith = "an ssh engine has hosts, rate, marginal, currency, team, config, folder and programs; each of " +
	"its hosts is " +
	"user@host, or has ssh or join, name, rate, marginal, address, cpus, memory, accelerator, accelerators and speed"

// UnmarshalYAML also accepts a plain host.
func (m *Machine) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		m.SSH = n.Value
		return nil
	}
	type plain Machine
	for i := 0; i+1 < len(n.Content); i += 2 { // a custom decoder loses strict mode, so check the fields here
		if name := n.Content[i].Value; !slices.Contains(machineFields, name) {
			return fmt.Errorf("line %d: field %s not found in type host", n.Content[i].Line, name)
		}
	}
	return n.Decode((*plain)(m))
}

var machineFields = []string{"ssh", "join", "name", "rate", "marginal", "address", "cpus", "memory", "accelerator",
	"accelerators", "speed"}

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	sshAddress = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@:\[\]%/-]{0,254}$`)
)

// Read returns the settings of an ssh engine with defaults filled in.
func Read(s *engine.Setting) (w With, err error) {
	if err := s.With.Into(&w, hasWith); err != nil {
		return w, err
	}
	if w.Currency == "" {
		w.Currency = money.USD
	}
	if !w.Currency.Valid() {
		return w, fmt.Errorf("with: currency is %q: write its code of three letters, such as EUR", w.Currency)
	}
	if fix := identity.WrongName(w.Team); w.Team != "" && fix != "" {
		return w, fmt.Errorf("with: team is %q: %s", w.Team, fix)
	}
	if len(w.Hosts) == 0 {
		return w, errors.New("with: hosts: the list is empty: write hosts: [user@gpu1], or scrimp engine add NAME --ssh " +
			"user@gpu1")
	}
	if w.Folder != "" && !filepath.IsAbs(w.Folder) {
		return w, fmt.Errorf("with: folder is %q: write an absolute path", w.Folder)
	}
	seen := map[string]bool{}
	for n := range w.Hosts {
		m := &w.Hosts[n]
		if err := m.fill(&w); err != nil {
			return w, err
		}
		if seen[m.Name] {
			return w, fmt.Errorf("with: hosts: %s appears twice: give each its own name", m.Name)
		}
		seen[m.Name] = true
	}
	return w, nil
}

func (m *Machine) fill(w *With) error {
	if m.Join != "" {
		if m.SSH != "" || m.Name != "" && m.Name != m.Join {
			return fmt.Errorf("with: hosts: join: %s: leave out ssh and name: the machine connects by itself, and join is its "+
				"name",
				m.Join)
		}
		m.Name = m.Join
		return m.fillRest(w)
	}
	if !sshAddress.MatchString(m.SSH) {
		return fmt.Errorf("with: hosts: ssh is %q: write user@host, or a name of your ssh configuration", m.SSH)
	}
	if why := wrongAddress(m.SSH); why != "" {
		return fmt.Errorf("with: hosts: ssh is %q: %s", m.SSH, why)
	}
	if m.Name == "" {
		_, host, found := strings.Cut(strings.TrimPrefix(m.SSH, "ssh://"), "@")
		if !found {
			host = strings.TrimPrefix(m.SSH, "ssh://")
		}
		m.Name = strings.Trim(strings.NewReplacer(":", "-", "[", "", "]", "", "%", "-", "/", "-").Replace(host), "-.")
	}
	return m.fillRest(w)
}

// fillRest validates the name and fills in what does not depend on the connection.
func (m *Machine) fillRest(w *With) error {
	if !hostName.MatchString(m.Name) {
		return fmt.Errorf("with: hosts: %s: name is %q: use up to 63 letters, digits, dots, hyphens", cmp.Or(m.SSH, m.Join),
			m.Name)
	}
	if m.Rate == nil {
		m.Rate = &w.Rate
	}
	if m.Marginal == nil {
		m.Marginal = &w.Marginal
	}
	switch {
	case *m.Rate < 0 || *m.Marginal < 0 || *m.Marginal > *m.Rate:
		return fmt.Errorf("with: hosts: %s: rate %v and marginal %v: rate is the whole price of an hour of use, and "+
			"marginal the "+
			"part of it that is saved when the machine is idle", m.Name, *m.Rate, *m.Marginal)
	case m.CPUs < 0 || m.Memory < 0 || m.Accelerators < 0 || m.Speed < 0:
		return fmt.Errorf("with: hosts: %s: a number is negative", m.Name)
	case m.Accelerators > 0 && m.Accelerator == "":
		return fmt.Errorf("with: hosts: %s: accelerators: name their kind under accelerator", m.Name)
	}
	return nil
}

// Dir returns the folder of an engine in a data folder.
func Dir(data, name string) string { return filepath.Join(data, "engines", name) }

// hostPort matches an address with a port that ssh would take for a part of the host's name.
var hostPort = regexp.MustCompile(`^([^:@]+@)?[^:@]+:[0-9]+$`)

// wrongPort reports whether the port of a URL is none. A literal IPv6 address has brackets.
func wrongPort(plain string) bool {
	at := strings.TrimSuffix(plain[strings.LastIndex(plain, "@")+1:], "/")
	at = at[strings.LastIndex(at, "]")+1:]
	_, text, found := strings.Cut(at, ":")
	port, err := strconv.ParseUint(text, 10, 16)
	return found && (err != nil || port == 0)
}

// wrongAddress returns what is wrong with an address that ssh would read in another way, or "".
func wrongAddress(address string) string {
	plain, isURL := strings.CutPrefix(address, "ssh://")
	_, host, found := strings.Cut(plain, "@")
	switch {
	case isURL && strings.Contains(strings.TrimSuffix(plain, "/"), "/"):
		return "a URL of ssh has no path: write ssh://user@host:port"
	case isURL && wrongPort(plain):
		return "a port is a number from 1 to 65535"
	case plain == "" || found && host == "":
		return "the host is missing: write user@host, or a name of your ssh configuration"
	case strings.HasPrefix(plain, "@"):
		return "the user before @ is missing: write user@host, or the host alone"
	case strings.Contains(host, "@"):
		return "it has two @: write user@host"
	case !isURL && hostPort.MatchString(address):
		return "ssh takes a port only in a URL: write ssh://" + address + ", or set Port in your ssh configuration"
	}
	return ""
}
