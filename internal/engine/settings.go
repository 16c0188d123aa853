package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/nearest"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/bound"
)

// SettingsName is the file in the data folder that names its engines.
const SettingsName = "engines.yaml"

// Setting is an engine as the data folder's file has it.
type Setting struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	// Agents is how its machines reach the server: "socket" ("" is that too), "listen" for
	// the address that the server listens on, or a URL.
	Agents string `yaml:"agents"`
	// Users is whose the programs on its machines are: UsersAuto or UsersSame; "": as its kind has it.
	Users string `yaml:"users"`
	// Seats is how many tasks of one user a machine may have at once; 0: one.
	Seats  Seats         `yaml:"seats"`
	Timing TimingSetting `yaml:"timing"`
	With   With          `yaml:"with"` // what only engines of its kind have
}

// With is what only engines of one kind have, as the file has it.
type With struct{ node *yaml.Node }

// WithOf is what a file would have for v.
func WithOf(v any) With {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		panic(err) // a bug: v is of this program
	}
	return With{node: &n}
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *With) UnmarshalYAML(n *yaml.Node) error {
	w.node = n
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (w With) MarshalYAML() (any, error) { return w.node, nil }

// IsZero reports whether the file has nothing of it.
func (w With) IsZero() bool { return w.node == nil }

// Into sets the fields of v, a pointer to a struct with tags for YAML, which has is a line about.
// A field that v does not have is refused.
func (w With) Into(v any, has string) error {
	if w.node == nil {
		return nil
	}
	text, err := yaml.Marshal(w.node)
	if err != nil {
		return fmt.Errorf("with: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err = d.Decode(v)
	if err == nil || errors.Is(err, io.EOF) {
		if err := bound.Numbers(v, time.Now()); err != nil {
			return fmt.Errorf("with: line %d: %w", w.node.Line, err)
		}
		return nil
	}
	line := placed.ReplaceAllStringFunc(inOneLine(err),
		func(at string) string { // of the part, which is not where the file has it
			n, _ := strconv.Atoi(placed.FindStringSubmatch(at)[1])
			return fmt.Sprintf("line %d: ", w.node.Line+n-1)
		})
	var wrong []string
	for _, field := range unknownHere.FindAllStringSubmatch(line, -1) {
		text := fmt.Sprintf("line %s: %s is not known", field[1], field[2])
		if near := nearest.Of(field[2], fieldsOf(v)); near != "" {
			text += " (did you mean " + near + "?)"
		}
		wrong = append(wrong, text)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("with: %s: %s", strings.Join(wrong, "; "), has)
	}
	return fmt.Errorf("with: %s: %s", line, has)
}

var (
	placed      = regexp.MustCompile(`line (\d+): `)
	unknownHere = regexp.MustCompile(`line (\d+): (\S+) is unknown there`)
)

// fieldsOf are the names in YAML of the fields of the struct that v points to.
func fieldsOf(v any) (list []string) {
	for f := range reflect.TypeOf(v).Elem().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			list = append(list, name)
		}
	}
	return list
}

// Whose the programs on an engine's machines are.
const (
	UsersAuto = "auto" // a user of each task's own, where the agent is root and other users reach the machine's folder
	UsersSame = "same" // the agent's
)

// TimingSetting is what a user sets of an engine's timing; nil: as its kind has it.
type TimingSetting struct {
	Poll        *Span `yaml:"poll"`
	Sweep       *Span `yaml:"sweep"`
	Detect      *Span `yaml:"detect"`
	Boot        *Span `yaml:"boot"`
	Consistency *Span `yaml:"consistency"`
	GrantWait   *Span `yaml:"grant_wait"`
	Bills       *Span `yaml:"bills"`
	Idle        *Span `yaml:"idle"`
}

// Span is a time as a user writes it: 300ms, 10m, or 0.
type Span time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > quantity.Decade {
		return fmt.Errorf("line %d: %q is no span: write it with its unit, as 300ms or 10m, not below zero and at most "+
			"87600h", n.Line, n.Value)
	}
	*s = Span(d)
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (s Span) MarshalYAML() (any, error) { return time.Duration(s).String(), nil }

// IsZero reports whether none is written.
func (s Span) IsZero() bool { return s == 0 }

// Over is the usual timing of a kind with what a user set.
func (s *TimingSetting) Over(usual Timing) Timing {
	for _, f := range []struct {
		set *Span
		to  *time.Duration
	}{
		{s.Poll, &usual.Poll}, {s.Sweep, &usual.Sweep}, {s.Detect, &usual.Detect}, {s.Boot, &usual.Boot},
		{s.Consistency, &usual.Consistency}, {s.GrantWait, &usual.GrantWait}, {s.Bills, &usual.Bills},
		{s.Idle, &usual.Idle},
	} {
		if f.set != nil {
			*f.to = time.Duration(*f.set)
		}
	}
	return usual
}

// ParseRate reads the price of an hour in an engine's settings: 2.50 or $2.50.
func ParseRate(text string) (money.Rate, error) {
	r, err := money.ParseRate(strings.TrimPrefix(text, "$"))
	if err == nil && !quantity.Price.Allows(r.Float()) {
		err = fmt.Errorf("price %q is above %.0f an hour", text, quantity.Price.Most)
	}
	return r, err
}

// Host is what a server is to the engines that it opens.
type Host struct {
	Dir    string // data folder
	Socket string // URL of the server's socket
	Listen string // URL of the address that it listens on; "": on none
	Market string // market file for an engine that has none of its own yet; "": the kind's
	Exe    string // the program that machines on this machine start; "" is this one
	Trial  bool   // it is opened to be looked at, beside a server that may have it open
	Deaf   bool   // the server listens on its socket alone
	Ends   bool   // the server is there to give all machines back: none needs to reach it
	Log    *slog.Logger
	Umask  string // that what is started begins with, in octal; "": this process' own
	// After is the market time that the log has come to: a market that is opened begins
	// there, or jobs would stand still until its clock had caught up.
	After func(context.Context) (time.Time, error)
}

// Opener opens an engine of a kind. It checks what is set, and asks nobody far away: an
// engine that does not answer yet is no error.
type Opener func(context.Context, Setting, Host) (Engine, error)

// Settings reads which engines the data folder has: those of its file, or the local
// market alone.
func Settings(dir string) ([]Setting, error) {
	path := filepath.Join(dir, SettingsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && linkedTo(dir) == "" {
		return []Setting{{Name: "local", Kind: "local"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read engines: %w", err)
	}
	return readSettings(path, text)
}

// settingsFile is all that the file has.
type settingsFile struct {
	Engines []Setting `yaml:"engines"`
}

// readSettings reads the text of a file.
func readSettings(path string, text []byte) ([]Setting, error) {
	var file settingsFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) { // an empty file names none
		return nil, fmt.Errorf("read engines: %s: %s", path, inOneLine(err))
	}
	if len(file.Engines) == 0 {
		return nil, fmt.Errorf("read engines: %s names none: write one, such as {name: local, kind: local}, or remove the "+
			"file", path)
	}
	seen := map[string]bool{}
	for _, s := range file.Engines {
		if !named.MatchString(s.Name) {
			return nil, fmt.Errorf("read engines: %s: engine %q: %s", path, s.Name, nameRule)
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("read engines: %s: engine %s stands twice: give each a name of its own", path, s.Name)
		}
		seen[s.Name] = true
		if s.Users != "" && s.Users != UsersAuto && s.Users != UsersSame {
			return nil, fmt.Errorf("read engines: %s: engine %s: users is %q: write auto, a user of each task's own, or same, "+
				"the agent's", path, s.Name, s.Users)
		}
		if !slices.Contains(ways, s.Agents) && !reachable(s.Agents) {
			return nil, fmt.Errorf("read engines: %s: engine %s: agents is %q: write socket, listen, unix:///PATH, "+
				"http://HOST:PORT or https://HOST:PORT, or ssh for an engine of that kind", path, s.Name, s.Agents)
		}
	}
	return file.Engines, nil
}

// Seats is how many tasks a machine may have at once, as a user writes it.
type Seats int

// ways are the words for how agents reach the server; an address is one too.
var ways = []string{"", "socket", "listen", "ssh"}

// mostSeats is the highest number that is taken.
const mostSeats = 64

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Seats) UnmarshalYAML(n *yaml.Node) error {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || v < 1 || v > mostSeats {
		return fmt.Errorf("line %d: seats: %q: write how many tasks of one user a machine may have at once, from 1 to %d",
			n.Line, n.Value, mostSeats)
	}
	*s = Seats(v)
	return nil
}

// OpenAll opens the engines of a data folder, each by its kind, and finds the clock that
// they have in common.
func OpenAll(ctx context.Context, kinds map[string]Opener, h Host) ([]Engine, Clock, error) {
	settings, err := Settings(h.Dir)
	if err != nil {
		return nil, Clock{}, err
	}
	engines := make([]Engine, 0, len(settings))
	for _, s := range settings {
		open := kinds[s.Kind]
		if open == nil {
			return nil, Clock{}, fmt.Errorf("%s: engine %s: %w", SettingsName, s.Name, UnknownKind(s.Kind, known(kinds)))
		}
		e, err := open(ctx, s, h)
		if err != nil {
			return nil, Clock{}, fmt.Errorf("%s: engine %s: %w", SettingsName, s.Name, err)
		}
		if err := e.Validate(); err != nil {
			return nil, Clock{}, err
		}
		engines = append(engines, e)
	}
	clock, err := Common(engines)
	return engines, clock, err
}

// UnknownKind says that an engine's kind is none of those that there are.
func UnknownKind(kind string, all []string) error {
	text := fmt.Sprintf("kind %q is not known here", kind)
	if near := nearest.Of(strings.ToLower(kind), all); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return fmt.Errorf("%s: take one of %s", text, strings.Join(all, ", "))
}

func known(kinds map[string]Opener) []string {
	var list []string
	for k := range kinds {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// AgentURL is by which the machines of an engine reach the server.
func (h *Host) AgentURL(s Setting) (string, error) {
	if h.Ends && h.Deaf {
		return h.Socket, nil
	}
	switch s.Agents {
	case "", "socket":
		return h.Socket, nil
	case "listen":
		if h.Listen == "" {
			return "", errors.New("its agents are to reach the address that the server listens on, and it listens on none, " +
				"or on any port that is free: start it with scrimp serve --listen HOST:PORT, or write agents: socket")
		}
		return h.Listen, nil
	}
	if h.Deaf && !strings.HasPrefix(s.Agents, "unix:") {
		return "", fmt.Errorf("agents: its machines reach the server at %s, and this server listens on no address, as one "+
			"that a command starts by itself: each machine would be paid for and never join: start it with "+
			"scrimp serve --listen HOST:PORT", s.Agents)
	}
	return s.Agents, nil
}
