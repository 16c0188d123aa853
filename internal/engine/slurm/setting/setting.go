// Package setting reads and validates the section with of a Slurm engine in engines.yaml.
package setting

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/rest"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// With is the section with of a Slurm engine.
type With struct {
	Conf     string `yaml:"conf,omitempty"`     // SLURM_CONF of the commands; empty: the server's own, or Slurm's default
	Commands string `yaml:"commands,omitempty"` // folder of sbatch and the others; empty: PATH
	// Shared is a folder that this machine and all nodes see under the same path; empty means one below the data
	// folder.
	Shared string `yaml:"shared,omitempty"`
	// Scratch is the folder on each node for its machines; empty means TMPDIR there, or /tmp.
	Scratch  string         `yaml:"scratch,omitempty"`
	Currency money.Currency `yaml:"currency,omitempty"` // of the rates; empty: USD
	Account  string         `yaml:"account,omitempty"`
	QOS      string         `yaml:"qos,omitempty"`
	WCKey    string         `yaml:"wckey,omitempty"`
	Options  []string       `yaml:"options,omitempty"` // further sbatch options, among the allowed ones
	// Signal is how long before its time limit an allocation gets a signal; 0 means a minute, or a quarter of a
	// shorter limit.
	Signal     engine.Span `yaml:"signal,omitempty"`
	Partitions []Partition `yaml:"partitions"`

	REST *rest.Setting `yaml:"rest,omitempty"` // nil: the engine uses Slurm's commands

	Requeue bool `yaml:"requeue,omitempty"` // refused, with the reason
}

// Partition is a partition from which machines are rented. Sizes that are not set are those of whole nodes.
type Partition struct {
	Name         string          `yaml:"name"`
	Capacity     market.Capacity `yaml:"capacity,omitempty"` // spot if jobs may be preempted; empty: as Slurm has it
	Rate         string          `yaml:"rate,omitempty"`     // hourly, of a machine; empty: unknown
	Machine      string          `yaml:"machine,omitempty"`  // name of the described machine; empty: derived from its size
	CPUs         int             `yaml:"cpus,omitempty"`
	Memory       string          `yaml:"memory,omitempty"`
	Accelerator  string          `yaml:"accelerator,omitempty"` // type of GRES gpu
	Accelerators int             `yaml:"accelerators,omitempty"`
	Account      string          `yaml:"account,omitempty"`
	QOS          string          `yaml:"qos,omitempty"`
	Constraint   string          `yaml:"constraint,omitempty"` // features of its nodes
	Time         engine.Span     `yaml:"time,omitempty"`       // limit of an allocation; 0: the partition's
	Options      []string        `yaml:"options,omitempty"`

	// The fields below are parsed from the texts above; engines.yaml does not contain them.

	HourRate      money.Rate `yaml:"-"` // hourly
	Priced        bool       `yaml:"-"` // Rate is given
	MachineMemory size.Bytes `yaml:"-"`
}

const withHas = "a Slurm engine has partitions (each with name, capacity, rate, machine, cpus, memory, " +
	"accelerator, " +
	"accelerators, account, qos, constraint, time, options), conf, commands, rest, shared, scratch, currency, " +
	"account, qos, wckey, " +
	"options and signal"

// Read parses and validates the settings.
func Read(s *engine.Setting) (w With, err error) {
	if err := s.With.Into(&w, withHas); err != nil {
		return w, err
	}
	switch {
	case w.Requeue:
		return w, errors.New("with: requeue: scrimp submits the next attempt itself, where it is cheapest, " +
			"and Slurm's own " +
			"would run beside it: leave requeue out")
	case w.REST != nil && (w.Conf != "" || w.Commands != ""):
		return w, errors.New("with: conf and commands configure Slurm's commands, and rest replaces those: " +
			"remove rest, or conf and commands")
	case len(w.Partitions) == 0:
		return w, errors.New("with: no partition: write partitions: [{name: NAME, rate: DOLLARS}], of those " +
			"that sinfo lists")
	}
	for name, path := range map[string]string{"conf": w.Conf, "commands": w.Commands, "shared": w.Shared,
		"scratch": w.Scratch} {
		if path != "" && !filepath.IsAbs(path) {
			return w, fmt.Errorf("with: %s is %q: write an absolute path", name, path)
		}
	}
	if w.REST != nil {
		if err := w.REST.Check(); err != nil {
			return w, fmt.Errorf("with: rest: %w", err)
		}
	}
	w.Currency = cmp.Or(w.Currency, money.USD)
	if !w.Currency.Valid() {
		return w, fmt.Errorf("with: currency is %q: write its code of three letters, such as EUR", w.Currency)
	}
	if err := w.checkOptions(w.Options); err != nil {
		return w, fmt.Errorf("with: %w", err)
	}
	err = w.checkPartitions()
	return w, err
}

// checkPartitions validates each partition, and that its machines have different names.
func (w *With) checkPartitions() error {
	seen := map[string]bool{}
	for n := range w.Partitions {
		p := &w.Partitions[n]
		if err := errors.Join(p.check(), w.checkOptions(p.Options)); err != nil {
			return fmt.Errorf("with: partition %q: %w", p.Name, err)
		}
		if key := p.Name + "/" + p.Machine; seen[key] {
			return fmt.Errorf("with: partition %q is listed twice: give each entry a machine name of its "+
				"own (machine)", p.Name)
		}
		seen[p.Name+"/"+p.Machine] = true
	}
	return nil
}

var (
	partitionName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	machineName   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	plainValue    = regexp.MustCompile(`^[A-Za-z0-9_.,:=@%+&|*()\[\]-]*$`)
)

func (p *Partition) check() error {
	for _, check := range []func() error{p.checkNames, p.checkShape, p.checkTexts, p.amounts} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Partition) checkNames() error {
	switch {
	case !partitionName.MatchString(p.Name):
		return errors.New("name: write it as sinfo has it")
	case p.Capacity != "" && p.Capacity != market.Spot && p.Capacity != market.OnDemand:
		return fmt.Errorf("capacity is %q: write spot, for jobs that may be preempted, or on-demand", p.Capacity)
	case p.Machine != "" && !machineName.MatchString(p.Machine):
		return fmt.Errorf("machine is %q: write small letters, digits, dots and hyphens", p.Machine)
	}
	return nil
}

// checkShape validates which part of a node a machine is.
func (p *Partition) checkShape() error {
	switch {
	case p.CPUs < 0 || p.Accelerators < 0:
		return errors.New("cpus and accelerators are numbers from zero")
	case p.Accelerator != "" && p.Accelerators == 0:
		return fmt.Errorf("accelerator is %s without a number: add accelerators: 1", p.Accelerator)
	case p.Accelerators > 0 && p.CPUs == 0, p.Memory != "" && p.CPUs == 0:
		return errors.New("a part of a node needs cpus: add cpus: 8")
	case p.CPUs > 0 && p.Memory == "":
		return errors.New("a part of a node needs memory: add memory: 32GiB")
	}
	return nil
}

// checkTexts validates the values that sbatch gets unchanged.
func (p *Partition) checkTexts() error {
	for _, v := range []struct{ name, text string }{{"account", p.Account}, {"qos", p.QOS},
		{"constraint", p.Constraint}, {"accelerator", p.Accelerator}} {
		if !plainValue.MatchString(v.text) {
			return fmt.Errorf("%s is %q: write it as Slurm has it", v.name, v.text)
		}
	}
	return nil
}

// amounts parses the rate and the memory, both optional.
func (p *Partition) amounts() error {
	if p.Rate != "" {
		r, err := engine.ParseRate(p.Rate)
		if err != nil || r <= 0 {
			return fmt.Errorf("rate is %q: write dollars an hour for one machine, such as 2.40, or leave it "+
				"out where it is unknown", p.Rate)
		}
		p.HourRate, p.Priced = r, true
	}
	if p.Memory != "" {
		m, err := size.Parse(p.Memory)
		if err != nil || m <= 0 {
			return fmt.Errorf("memory is %q: write it with its unit, such as 32GiB", p.Memory)
		}
		p.MachineMemory = m
	}
	return nil
}

// allowed are the sbatch options that a user may add. They exclude options that scrimp sets itself or that would
// change what a machine is.
var allowed = []string{
	"nice", "reservation", "licenses", "exclude", "nodelist", "switches", "prefer", "gpu-freq", "cpu-freq", "tmp",
	"core-spec",
	"thread-spec", "hint", "threads-per-core", "network", "mail-type", "mail-user", "gres-flags", "gpu-bind", "spread-job",
}

func (w *With) checkOptions(options []string) error {
	for _, o := range options {
		name, value, _ := strings.Cut(strings.TrimPrefix(o, "--"), "=")
		if !strings.HasPrefix(o, "--") || !slices.Contains(allowed, name) || !plainValue.MatchString(value) {
			return fmt.Errorf("option %q is not passed on: write --NAME=VALUE, with one of "+
				"%s", o, strings.Join(allowed, ", "))
		}
		if w.REST == nil {
			continue
		}
		if err := rest.CheckOption(name, value); err != nil {
			return err
		}
	}
	return nil
}
