package marketd

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

// start starts the machine's first process in its own session.
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
	// The agent inherits this process' environment, which comes from the shell that started the
	// server. It may use that for its own calls (proxies, store credentials), but must not pass it
	// to programs.
	cmd.Env = append(cmd.Env, "SCRIMP_BORROWED_ENVIRONMENT=1", "SCRIMP_INSTANCE_ID="+m.ID, "SCRIMP_MACHINE_DIR="+dir,
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://"+address+"/")
	if err := cmd.Start(); err != nil {
		return err
	}
	m.PID, m.exited = cmd.Process.Pid, make(chan struct{})
	m.Begun = procs.Begun(m.PID)
	go func() { // not in tasks, because the daemon exits while its machines run
		_ = cmd.Wait() // the exit status does not matter
		close(m.exited)
	}()
	return nil
}

// wipe deletes the disk of an ended machine, as a provider does: unmasked output and work files. It
// keeps the console log.
func (d *daemon) wipe(id string) {
	dir := filepath.Join(d.opts.Machines, id)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != consoleName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		d.opts.Log.Error("cannot remove the disk of an ended machine", "instance", id, "error", err)
	}
}

// consoleName is the file with the output of a machine's first process.
const consoleName = "console.log"
