// Package procs finds, stops and kills the processes of a machine that is a tree of processes of this computer: by
// descent, session, and the machine's name in their environment.
package procs

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is an entry of /proc.
type process struct {
	pid, parent, session int
	begun                string // start time in the kernel's form; with the PID it identifies a process for ever
}

// look returns a living process; zombies do not count.
func look(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	end := bytes.LastIndexByte(b, ')') // the name may contain spaces and brackets
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	p := process{pid: pid, begun: fields[19]}
	p.parent, _ = strconv.Atoi(fields[1])
	p.session, _ = strconv.Atoi(fields[3])
	return p, true
}

// Begun returns when a living process started, in the kernel's form; with the PID it identifies a process for ever.
func Begun(pid int) string { p, _ := look(pid); return p.begun }

// Alive reports whether the process with that PID is still the one that started then.
func Alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	if now := Begun(pid); now != "" || start != "" {
		return now == start && now != ""
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // without /proc
}

// Runs reports whether a process with that PID runs. A zombie does not: where nobody reaps zombies, as in a container
// without an init, it would stay for ever.
func Runs(pid int) bool {
	if _, ok := look(pid); ok {
		return true
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return false
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // without /proc
}

// KillAll kills every process of a machine and returns when none is left: the group of its first one, all
// descendants, and processes that left both but carry the machine's name in their environment. It returns false if
// some do not die.
func KillAll(id string, pid int, start string) bool {
	stopAll(id, pid, start)
	for range 500 {
		victims := Members(id, pid, start)
		if Alive(pid, start) {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		if len(victims) == 0 && !Alive(pid, start) {
			return true
		}
		for _, p := range victims {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// stopAll stops every process of a machine until it finds no further one: a process killed during a fork would leave
// a child without the parent by which it is found.
func stopAll(id string, pid int, start string) {
	halted := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range Members(id, pid, start) {
			if !halted[p] {
				halted[p], more = true, true
				_ = syscall.Kill(p, syscall.SIGSTOP) // most likely it is already gone
			}
		}
	}
}

// named yields every living process except this one, with the machine named in its environment; empty if there is
// none.
func named(yield func(process, string) bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // without /proc
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
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ") // unreadable: another user's process
		if !yield(p, nameIn(env)) {
			return
		}
	}
}

// nameIn returns the machine named in an environment: agents have one variable, programs another.
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

// Members returns the living processes of a machine.
func Members(id string, pid int, start string) []int {
	mine, all := map[int]bool{}, map[int]process{}
	if Alive(pid, start) {
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
		sessions := map[int]bool{} // sessions whose leader belongs to the machine, or has ended and left a member of it
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

// First returns the first process of a machine that an earlier daemon started: the oldest session leader that carries
// its name.
func First(id string) (pid int, start string) {
	for p, name := range named {
		if name == id && p.session == p.pid && (start == "" || older(p.begun, start)) {
			pid, start = p.pid, p.begun
		}
	}
	return pid, start
}

// older compares two decimal tick counts.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// Strays returns the processes of machines with that name prefix that are not rented.
func Strays(prefix string, rented map[string]bool) map[string][]int {
	out := map[string][]int{}
	for p, name := range named {
		if strings.HasPrefix(name, prefix) && !rented[name] {
			out[name] = append(out[name], p.pid)
		}
	}
	return out
}

// Boot returns the id of this boot; empty if unknown.
func Boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// Booted returns when the computer booted; zero if unknown.
func Booted() time.Time {
	b, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(b)) {
		if s, ok := strings.CutPrefix(strings.TrimSpace(line), "btime "); ok {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}
