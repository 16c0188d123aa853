package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// start runs the machine's first process in a session of its own.
func (d *daemon) start(m *machine, env map[string]string) error {
	dir, err := filepath.Abs(filepath.Join(d.opts.Dir, "machines", m.ID))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(dir, "console.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(d.opts.Machine[0], d.opts.Machine[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SCRIMP_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	address := fmt.Sprintf("127.0.0.1:%d", m.Port)
	cmd.Env = append(cmd.Env, "SCRIMP_INSTANCE_ID="+m.ID, "SCRIMP_MACHINE_DIR="+dir, "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://"+address+"/")
	if err := cmd.Start(); err != nil {
		return err
	}
	m.PID, m.exited = cmd.Process.Pid, make(chan struct{})
	m.Begun, _ = begun(m.PID)
	d.tasks.Go(func() {
		_ = cmd.Wait() // how it ended is its own affair
		close(m.exited)
	})
	return nil
}

// begun returns when the process began, in the kernel's own form, and its parent.
func begun(pid int) (start string, parent int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	_, rest, ok := strings.Cut(string(b), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[19], parent
}

// alive reports whether the process of that number is still the one that began then.
func alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	if now, _ := begun(pid); now != "" || start != "" {
		return now == start && now != ""
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // no /proc here
}

// killAll kills every process of a machine and returns when none is left:
// its session, whatever descends from it, and whatever left both but carries the machine's name in its environment.
func killAll(id string, pid int, start string) {
	for range 500 {
		victims := descendants(id, pid, start)
		if alive(pid, start) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if len(victims) == 0 && !alive(pid, start) {
			return
		}
		for _, p := range victims {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants lists the living processes of a machine.
func descendants(id string, pid int, start string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	marks := [][]byte{[]byte("\x00SCRIMP_INSTANCE_ID=" + id + "\x00"), []byte("\x00SCRIMP_INSTANCE=" + id + "\x00")}
	mine := map[int]bool{}
	parents := map[int]int{}
	if alive(pid, start) {
		mine[pid] = true
	}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil || p == os.Getpid() {
			continue
		}
		began, parent := begun(p)
		if began == "" {
			continue
		}
		parents[p] = parent
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil {
			continue
		}
		env = append(append([]byte{0}, env...), 0)
		for _, m := range marks {
			if bytes.Contains(env, m) {
				mine[p] = true
			}
		}
	}
	for grew := true; grew; {
		grew = false
		for p, parent := range parents {
			if mine[parent] && !mine[p] {
				mine[p], grew = true, true
			}
		}
	}
	list := make([]int, 0, len(mine))
	for p := range mine {
		list = append(list, p)
	}
	return list
}
