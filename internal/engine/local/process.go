package local

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"scrimp/internal/lib/child"

	"scrimp/internal/engine/procs"
)

// start runs the machine's first process in a session of its own.
func (d *daemon) start(m *machine, env map[string]string) error {
	dir, err := filepath.Abs(filepath.Join(d.opts.Machines, m.ID))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(dir, consoleName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(d.opts.Machine[0], d.opts.Machine[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = child.Environ(child.OfAgent)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	address := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	// The agent has this process' environment, whose shell started the server: for its own calls (proxies, the keys
	// of a store), and not for the programs of jobs.
	cmd.Env = append(cmd.Env, "SCRIMP_BORROWED_ENVIRONMENT=1", "SCRIMP_INSTANCE_ID="+m.ID, "SCRIMP_MACHINE_DIR="+dir,
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://"+address+"/")
	if err := cmd.Start(); err != nil {
		return err
	}
	m.PID, m.exited = cmd.Process.Pid, make(chan struct{})
	m.Begun = procs.Begun(m.PID)
	go func() { // no task of the daemon's, which leaves while its machines run
		_ = cmd.Wait() // how it ended is its own affair
		close(m.exited)
	}()
	return nil
}

// wipe removes what a machine that has ended had on its disk, as a provider does: what programs printed, with
// no secret masked yet, and what they worked on. What its first process said stays.
func (d *daemon) wipe(id string) {
	dir := filepath.Join(d.opts.Machines, id)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != consoleName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		d.opts.Log.Error("the disk of a machine that has ended is not removed", "instance", id, "error", err)
	}
}

// consoleName is what a machine's first process says.
const consoleName = "console.log"
