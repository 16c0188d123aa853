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
	"scrimp/internal/lib/yamlerror"
	"scrimp/internal/wire/limits"
)

// SettingsName is the file in the data folder that lists its engines.
const SettingsName = "engines.yaml"

// Setting is one engine in that file.
type Setting struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	// Agents is how its machines reach the server: "socket" or empty for the server's socket,
	// "listen" for its listen address, or a URL.
	Agents string `yaml:"agents"`
	// Users is which user runs programs on its machines: UsersAuto or UsersSame; empty: the kind's default.
	Users string `yaml:"users"`
	// Seats is how many tasks of one user a machine may run at once; 0: one.
	Seats  Seats         `yaml:"seats"`
	Timing TimingSetting `yaml:"timing"`
	With   With          `yaml:"with"` // settings specific to the kind
}

// With holds settings specific to one kind of engine.
type With struct{ node *yaml.Node }

// WithOf returns the settings that the file would have for v.
func WithOf(v any) With {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		panic(err) // a bug: v comes from this program
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

// IsZero reports whether the file has no such settings.
func (w With) IsZero() bool { return w.node == nil }

// Into decodes the settings into v, a pointer to a struct with YAML tags, and refuses unknown
// fields. has is a sentence for errors that lists the known ones.
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
		if err := limits.Numbers(v, time.Now()); err != nil {
			return fmt.Errorf("with: line %d: %w", w.node.Line, err)
		}
		return nil
	}
	line := placed.ReplaceAllStringFunc(yamlerror.InOneLine(err, inFile),
		func(at string) string { // numbers count from this part: add its line in the file
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

// fieldsOf returns the YAML field names of the struct that v points to.
func fieldsOf(v any) (list []string) {
	for f := range reflect.TypeOf(v).Elem().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			list = append(list, name)
		}
	}
	return list
}

// Which user runs programs on an engine's machines.
const (
	UsersAuto = "auto" // a separate user for each task, if the agent is root and others reach the machine's folder
	UsersSame = "same" // the agent's user
)

// TimingSetting holds a user's settings of an engine's timing; nil: the kind's default.
type TimingSetting struct {
	Poll        *Span `yaml:"poll"`
	Sweep       *Span `yaml:"sweep"`
	Detect      *Span `yaml:"detect"`
	Boot        *Span `yaml:"boot"`
	Start       *Span `yaml:"start"`
	Consistency *Span `yaml:"consistency"`
	GrantWait   *Span `yaml:"grant_wait"`
	Bills       *Span `yaml:"bills"`
	Idle        *Span `yaml:"idle"`
}

// Span is a duration as a user writes it: 300ms, 10m or 0.
type Span time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > quantity.Decade {
		return fmt.Errorf("line %d: %q is not a duration: write it with its unit, such as 300ms or 10m, from 0 to "+
			"87600h", n.Line, n.Value)
	}
	*s = Span(d)
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (s Span) MarshalYAML() (any, error) { return time.Duration(s).String(), nil }

// IsZero reports whether the span is zero.
func (s Span) IsZero() bool { return s == 0 }

// Over returns the usual timing of a kind with the user's settings applied.
func (s *TimingSetting) Over(usual Timing) Timing {
	for _, f := range []struct {
		set *Span
		to  *time.Duration
	}{
		{s.Poll, &usual.Poll}, {s.Sweep, &usual.Sweep}, {s.Detect, &usual.Detect}, {s.Boot, &usual.Boot},
		{s.Start, &usual.Start},
		{s.Consistency, &usual.Consistency}, {s.GrantWait, &usual.GrantWait}, {s.Bills, &usual.Bills},
		{s.Idle, &usual.Idle},
	} {
		if f.set != nil {
			*f.to = time.Duration(*f.set)
		}
	}
	return usual
}

// ParseRate parses a price per hour in an engine's settings: 2.50 or $2.50.
func ParseRate(text string) (money.Rate, error) {
	r, err := money.ParseRate(strings.TrimPrefix(text, "$"))
	if err == nil && !quantity.Price.Allows(r.Float()) {
		err = fmt.Errorf("price %q is above %.0f an hour", text, quantity.Price.Most)
	}
	return r, err
}

// Host describes a server to the engines that it opens.
type Host struct {
	Dir    string // data folder
	Socket string // URL of the server's socket
	Listen string // URL of its listen address; empty: none
	Market string // market file for an engine without one; empty: the kind's default
	Exe    string // the program that local machines start; empty: this one
	Trial  bool   // the engine is opened for inspection, maybe beside a server that has it open
	Deaf   bool   // the server listens only on its socket
	Ends   bool   // the server runs only to terminate all machines: none needs to reach it
	Log    *slog.Logger
	Umask  string // octal umask for started processes; empty: this process' own
	// After returns the market time that the log has reached. A market opens at that time, because
	// jobs would otherwise stand still until its clock had caught up.
	After func(context.Context) (time.Time, error)
}

// Opener opens an engine of one kind. It checks the settings and contacts no remote service: an
// engine that does not respond yet is not an error.
type Opener func(context.Context, Setting, Host) (Engine, error)

// Settings reads the engines of a data folder: those in its file or, without a file, the local market alone.
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

// inFile describes the types of the file in its words.
var inFile = map[string]yamlerror.Type{
	"engine.Setting": {Value: "a map of fields", Fields: "an engine has name, kind, agents, users, seats, timing and " +
		"with; settings of one kind, such as market or machines, go under with"},
	"engine.settingsFile": {Fields: "the file has engines, a list of them"},
}

// settingsFile is the content of the file.
type settingsFile struct {
	Engines []Setting `yaml:"engines"`
}

// readSettings parses the text of a settings file.
func readSettings(path string, text []byte) ([]Setting, error) {
	var file settingsFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) { // an empty file lists none
		return nil, fmt.Errorf("read engines: %s: %s", path, yamlerror.InOneLine(err, inFile))
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
			return nil, fmt.Errorf("read engines: %s: engine %s is listed twice: give each engine its own name", path, s.Name)
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

// Seats is how many tasks a machine may run at once, as a user writes it.
type Seats int

// ways lists the keywords for how agents reach the server; a URL is valid too.
var ways = []string{"", "socket", "listen", "ssh"}

// maxSeats is the highest valid number.
const maxSeats = 64

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Seats) UnmarshalYAML(n *yaml.Node) error {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || v < 1 || v > maxSeats {
		return fmt.Errorf("line %d: seats: %q: write how many tasks of one user a machine may have at once, from 1 to %d",
			n.Line, n.Value, maxSeats)
	}
	*s = Seats(v)
	return nil
}

// OpenAll opens the engines of a data folder, each by its kind, and returns them with their common clock.
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

// UnknownKind returns the error for an unknown kind of engine.
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

// AgentURL returns the URL at which the machines of an engine reach the server.
func (h *Host) AgentURL(s Setting) (string, error) {
	if h.Ends && h.Deaf {
		return h.Socket, nil
	}
	switch s.Agents {
	case "", "socket":
		return h.Socket, nil
	case "listen":
		if h.Listen == "" {
			return "", errors.New("its agents need the server's listen address, and the server listens on none, " +
				"or on any port that is free: start it with scrimp serve --listen HOST:PORT, or write agents: socket")
		}
		return h.Listen, nil
	}
	if h.Deaf && !strings.HasPrefix(s.Agents, "unix:") {
		return "", fmt.Errorf("agents: its machines reach the server at %s, and this server listens on no address, as one "+
			"that a command starts by itself: each machine would cost money and never join: start it with "+
			"scrimp serve --listen HOST:PORT", s.Agents)
	}
	return s.Agents, nil
}
