package hostd

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/lib/child"

	"scrimp/internal/engine/procs"
)

const (
	consoleName = "console.log" // output of a machine's first process
	endName     = "ended"       // its end, in seconds since 1970
)

// trees runs machines as trees of processes of this computer.
type trees struct {
	agent   []string
	address string
	server  string // URL at which agents reach the server; empty: set by the launch
	ca      string // certificates trusted for that; empty: the system's alone
}

// supervised is a shell script that runs the agent and records when it ends.
const supervised = `"$@"; date +%s > ` + endName + `.new && mv ` + endName + `.new ` + endName

// Start implements Processes.
func (t *trees) Start(id, dir string, env map[string]string) (Process, error) {
	out, err := os.OpenFile(filepath.Join(dir, consoleName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command("/bin/sh", append([]string{"-c", supervised, "scrimp-machine"}, t.agent...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the daemon
	cmd.Env = child.Environ(child.OfAgent)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if t.server != "" { // the last of two values counts
		cmd.Env = append(cmd.Env, "SCRIMP_SERVER="+t.server, "SCRIMP_CA="+t.ca)
	}
	// From the daemon's login environment, programs get only what belongs to the computer and its user.
	cmd.Env = append(cmd.Env, "SCRIMP_BORROWED_ENVIRONMENT=1", "SCRIMP_INSTANCE_ID="+id, "SCRIMP_MACHINE_DIR="+dir,
		"SCRIMP_CACHE_DIR="+filepath.Join(filepath.Dir(dir), "cache"))
	if at := t.reached(); at != "" {
		cmd.Env = append(cmd.Env, "SCRIMP_ADDRESS="+at)
	}
	if err := cmd.Start(); err != nil {
		return Process{}, err
	}
	p := Process{PID: cmd.Process.Pid, Start: procs.Begun(cmd.Process.Pid)}
	go func() { _ = cmd.Wait() }() // nobody needs its result here; after the daemon's end init collects it
	return p, nil
}

// reached returns the address at which other machines reach this one: the configured one, or the one that the ssh
// client used.
func (t *trees) reached() string {
	if t.address != "" {
		return t.address
	}
	if parts := strings.Fields(os.Getenv("SSH_CONNECTION")); len(parts) == 4 && net.ParseIP(parts[2]) != nil {
		return parts[2]
	}
	return ""
}

// First implements Processes.
func (t *trees) First(id string) (p Process) {
	p.PID, p.Start = procs.First(id)
	return p
}

// Alive implements Processes.
func (t *trees) Alive(p Process) bool { return procs.Alive(p.PID, p.Start) }

// Kill implements Processes.
func (t *trees) Kill(id string, first Process) bool { return procs.KillAll(id, first.PID, first.Start) }

// Boot implements Processes.
func (t *trees) Boot() (id string, at time.Time) { return procs.Boot(), procs.Booted() }

// endedAt returns the recorded end of the machine in a folder; zero if there is none.
func endedAt(dir string) time.Time {
	text, err := os.ReadFile(filepath.Join(dir, endName))
	if err != nil {
		return time.Time{}
	}
	s, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(s, 0)
}
