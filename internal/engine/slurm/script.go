package slurm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/sale"
	"scrimp/internal/lib/durable"
)

//go:embed run.sh
var runScript string

// script returns the script of r's allocation.
func (d *Driver) script(r *record.Record, s *sale.Sale, env map[string]string, exe string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, v := range [][2]string{
		{"dir", d.store.Folder(r.Name)}, {"engine", d.store.Engine}, {"server", env["SCRIMP_SERVER"]},
		{"users", env["SCRIMP_TASK_USER"]}, {"exe", exe}, {"scratch", d.with.Scratch},
		{"notice", s.Notice().String()}, {"watch", d.watch(r)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v[0], quoted(v[1]))
	}
	b.WriteString(strings.TrimPrefix(runScript, "#!/bin/bash\n"))
	return b.String()
}

// watch returns "1" if an allocation must watch for files that end single machines, because slurmrestd cannot signal
// steps.
func (d *Driver) watch(r *record.Record) string {
	if d.with.REST != nil && r.Nodes > 1 {
		return "1"
	}
	return ""
}

// quoted quotes a value for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// prepare writes an allocation's files: its script, and a token per rank that only its user can read.
func (d *Driver) prepare(r *record.Record, s *sale.Sale, env map[string]string) error {
	exe, err := d.agentProgram()
	if err != nil {
		return err
	}
	dir := d.store.Folder(r.Name)
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

func (d *Driver) token(r *record.Record, rank int) string {
	return filepath.Join(d.store.Folder(r.Name), fmt.Sprintf("token.%d", rank))
}

// dropTokens deletes the tokens of an allocation that no longer needs them.
func (d *Driver) dropTokens(r *record.Record) {
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
	path := filepath.Join(d.store.Dir, "bin", hex.EncodeToString(h.Sum(nil))[:16], "scrimp")
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
