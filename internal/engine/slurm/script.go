package slurm

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/durable"
	"scrimp/internal/market"
)

//go:embed run.sh
var runScript string

// script returns the script of r's allocation.
func (d *Driver) script(r *record, s *sale, env map[string]string, exe string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, v := range [][2]string{
		{"dir", d.folder(r.Name)}, {"engine", d.name}, {"server", env["SCRIMP_SERVER"]}, {"users", env["SCRIMP_TASK_USER"]},
		{"exe", exe}, {"scratch", d.with.Scratch}, {"notice", d.notice(s).String()}, {"watch", d.watch(r)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v[0], quoted(v[1]))
	}
	b.WriteString(strings.TrimPrefix(runScript, "#!/bin/bash\n"))
	return b.String()
}

// watch returns "1" if an allocation must watch for files that end single machines, because slurmrestd cannot signal
// steps.
func (d *Driver) watch(r *record) string {
	if d.with.REST != nil && r.Nodes > 1 {
		return "1"
	}
	return ""
}

// quoted quotes a value for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// lead returns how long before its time limit an allocation gets a signal.
func (d *Driver) lead(s *sale) time.Duration {
	l := cmp.Or(time.Duration(d.with.Signal), time.Minute)
	if most := s.offer.MaxLifetime; most > 0 && l > most/4 {
		l = most / 4
	}
	return l
}

// notice returns how long a machine remains after its agent hears of its end.
func (d *Driver) notice(s *sale) time.Duration {
	switch {
	case s.offer.Capacity == market.Spot:
		return min(s.offer.Notice, d.lead(s))
	case s.offer.MaxLifetime > 0:
		return d.lead(s)
	}
	return cmp.Or(s.killWait, 30*time.Second)
}

// order returns the job to submit for r.
func (d *Driver) order(r *record, s *sale) *scheduler.Order {
	p, offer := s.of, &s.offer
	o := &scheduler.Order{Name: r.Name, Comment: r.comment(), Partition: p.Name, Nodes: r.Nodes, CPUs: offer.CPUs,
		Exclusive: s.whole, Memory: offer.Memory, Accelerator: offer.Accelerator, Accelerators: offer.Accelerators,
		Lead: d.lead(s), Limit: offer.MaxLifetime, Unlimited: offer.MaxLifetime == 0 && s.part.Defaults,
		Account: cmp.Or(p.Account, d.with.Account), QOS: cmp.Or(p.QOS, d.with.QOS), WCKey: d.with.WCKey,
		Constraint: p.Constraint, Options: slices.Concat(d.with.Options, p.Options)}
	if s.whole && s.sole { // other nodes of the partition would have less
		o.Memory = 0
	}
	return o
}

// prepare writes an allocation's files: its script, and a token per rank that only its user can read.
func (d *Driver) prepare(r *record, s *sale, env map[string]string) error {
	exe, err := d.agentProgram()
	if err != nil {
		return err
	}
	dir := d.folder(r.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the allocation's folder: %w", err)
	}
	if err := durable.Replace(filepath.Join(dir, "run.sh"), []byte(d.script(r, s, env, exe))); err != nil {
		return fmt.Errorf("write the allocation's script: %w", err)
	}
	for k := range r.Nodes {
		if err := durable.Replace(d.token(r, k), []byte(env["SCRIMP_TOKEN"])); err != nil {
			return fmt.Errorf("write the token of rank %d: %w", k, err)
		}
	}
	return nil
}

func (d *Driver) token(r *record, rank int) string {
	return filepath.Join(d.folder(r.Name), fmt.Sprintf("token.%d", rank))
}

// dropTokens deletes the tokens of an allocation that no longer needs them.
func (d *Driver) dropTokens(r *record) {
	for k := range r.Nodes {
		_ = os.Remove(d.token(r, k)) // most likely its agent has already taken it
	}
}

// agentProgram copies this program to the shared folder, named by its hash, so that allocations of an older server
// keep theirs.
func (d *Driver) agentProgram() (string, error) {
	d.program.Lock()
	defer d.program.Unlock()
	if d.agent != "" {
		if _, err := os.Stat(d.agent); err == nil {
			return d.agent, nil
		}
	}
	f, err := os.Open(d.exe)
	if err != nil {
		return "", fmt.Errorf("read the agent's program: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the agent's program: %w", err)
	}
	path := filepath.Join(d.shared, "bin", hex.EncodeToString(h.Sum(nil))[:16], "scrimp")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := copyProgram(f, path); err != nil {
			return "", fmt.Errorf("copy the agent's program to %s: %w", path, err)
		}
	}
	d.agent = path
	return path, nil
}

func copyProgram(from *os.File, to string) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the file has its final name by then
	_, err = io.Copy(f, from)
	err = errors.Join(err, f.Chmod(0o700), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}
