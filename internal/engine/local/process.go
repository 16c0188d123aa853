package local

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	address := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	cmd.Env = append(cmd.Env, "SCRIMP_INSTANCE_ID="+m.ID, "SCRIMP_MACHINE_DIR="+dir,
		"AWS_EC2_METADATA_SERVICE_ENDPOINT=http://"+address+"/")
	if err := cmd.Start(); err != nil {
		return err
	}
	m.PID, m.exited = cmd.Process.Pid, make(chan struct{})
	m.Begun = begun(m.PID)
	go func() { // no task of the daemon's, which leaves while its machines run
		_ = cmd.Wait() // how it ended is its own affair
		close(m.exited)
	}()
	return nil
}

// process is what /proc says of one.
type process struct {
	pid, parent, session int
	begun                string // when, in the kernel's own form: with the pid it names a process for ever
}

// look returns a living process. Zombies do not live.
func look(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	end := bytes.LastIndexByte(b, ')') // the name may hold blanks and brackets
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	p := process{pid: pid, begun: fields[19]}
	p.parent, _ = strconv.Atoi(fields[1])
	p.session, _ = strconv.Atoi(fields[3])
	return p, true
}

func begun(pid int) string { p, _ := look(pid); return p.begun }

// alive reports whether the process of that number is still the one that began then.
func alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	if now := begun(pid); now != "" || start != "" {
		return now == start && now != ""
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // no /proc here
}

// killAll kills every process of a machine and returns when none is left: its
// first one's group, whatever descends from it, and whatever left both but carries
// the machine's name in its environment. It reports false where some would not die.
func killAll(id string, pid int, start string) bool {
	for range 500 {
		victims := members(id, pid, start)
		if alive(pid, start) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if len(victims) == 0 && !alive(pid, start) {
			return true
		}
		for _, p := range victims {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// named yields every living process but this one, with the machine that its
// environment names, "" for none.
func named(yield func(process, string) bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // no /proc here
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, ok := look(pid)
		if !ok {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ") // another user's cannot be read, and is no machine of ours
		if !yield(p, nameIn(env)) {
			return
		}
	}
}

// nameIn returns the machine that an environment names: to the agent in one
// variable, to the program in another.
func nameIn(environ []byte) string {
	for v := range bytes.SplitSeq(environ, []byte{0}) {
		for _, name := range []string{"SCRIMP_INSTANCE_ID=", "SCRIMP_INSTANCE="} {
			if id, ok := bytes.CutPrefix(v, []byte(name)); ok {
				return string(id)
			}
		}
	}
	return ""
}

// members lists the living processes of a machine.
func members(id string, pid int, start string) []int {
	mine, all := map[int]bool{}, map[int]process{}
	if alive(pid, start) {
		mine[pid] = true
	}
	for p, name := range named {
		all[p.pid] = p
		if name == id {
			mine[p.pid] = true
		}
	}
	for grew := true; grew; {
		grew = false
		sessions := map[int]bool{} // whose leader is of the machine, or has ended and left a member of it
		for p := range mine {
			s := all[p].session
			if _, there := all[s]; s > 0 && (mine[s] || !there) {
				sessions[s] = true
			}
		}
		for _, p := range all {
			if !mine[p.pid] && (mine[p.parent] || sessions[p.session]) {
				mine[p.pid], grew = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(mine))
}

// first returns the first process of a machine that an earlier daemon started:
// the leader of its own session that carries its name and began first.
func first(id string) (pid int, start string) {
	for p, name := range named {
		if name == id && p.session == p.pid && (start == "" || older(p.begun, start)) {
			pid, start = p.pid, p.begun
		}
	}
	return pid, start
}

// older compares two counts of ticks.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// strays returns the processes of machines whose name begins so and that are not rented.
func strays(prefix string, rented map[string]bool) map[string][]int {
	out := map[string][]int{}
	for p, name := range named {
		if strings.HasPrefix(name, prefix) && !rented[name] {
			out[name] = append(out[name], p.pid)
		}
	}
	return out
}
