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
	consoleName = "console.log" // what a machine's first process says
	endName     = "ended"       // when it has ended, in seconds since 1970
)

// trees are machines that are trees of processes of this computer.
type trees struct {
	agent   []string
	address string
	server  string // by which agents reach the server; "": as the launch says
	ca      string // file of certificates that are trusted for that; "": the system's alone
}

// supervised runs the agent and writes down when it has ended, for whoever looks later.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it goes on when we end
	cmd.Env = child.Environ(child.OfAgent)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if t.server != "" { // what stands later holds
		cmd.Env = append(cmd.Env, "SCRIMP_SERVER="+t.server, "SCRIMP_CA="+t.ca)
	}
	// Of the login that began us programs get what belongs to the computer and its user.
	cmd.Env = append(cmd.Env, "SCRIMP_BORROWED_ENVIRONMENT=1", "SCRIMP_INSTANCE_ID="+id, "SCRIMP_MACHINE_DIR="+dir)
	if at := t.reached(); at != "" {
		cmd.Env = append(cmd.Env, "SCRIMP_ADDRESS="+at)
	}
	if err := cmd.Start(); err != nil {
		return Process{}, err
	}
	p := Process{PID: cmd.Process.Pid, Start: procs.Begun(cmd.Process.Pid)}
	go func() { _ = cmd.Wait() }() // how it ended is its own affair; without us it is init's
	return p, nil
}

// reached is the address by which other machines reach this one: as set, else that by which
// the ssh client that began us did.
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

// endedAt is when the machine in a folder has written that it ended; zero: it has not.
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
