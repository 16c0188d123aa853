// Package procs finds, halts and ends the processes of a machine that is a tree of processes of this
// computer: by descent, session, and the machine's name in their environment.
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

// Begun is when a living process began, in the kernel's own form: with the pid it names a process for ever.
func Begun(pid int) string { p, _ := look(pid); return p.begun }

// Alive reports whether the process of that number is still the one that began then.
func Alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	if now := Begun(pid); now != "" || start != "" {
		return now == start && now != ""
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // no /proc here
}

// Runs reports whether a process of that number runs. A zombie does not: where nobody collects zombies, such as in a
// container without an init, it would stay for ever.
func Runs(pid int) bool {
	if _, ok := look(pid); ok {
		return true
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return false
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) // no /proc here
}

// KillAll kills every process of a machine and returns when none is left: its
// First one's group, whatever descends from it, and whatever left both but carries
// the machine's name in its environment. It reports false where some would not die.
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

// stopAll halts every process of a machine, until a look finds no further one: whoever is killed while it
// forks would leave a child without a parent, by which it is found.
func stopAll(id string, pid int, start string) {
	halted := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range Members(id, pid, start) {
			if !halted[p] {
				halted[p], more = true, true
				_ = syscall.Kill(p, syscall.SIGSTOP) // gone already, most likely
			}
		}
	}
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

// Members lists the living processes of a machine.
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

// First returns the first process of a machine that an earlier daemon started:
// the leader of its own session that carries its name and began first.
func First(id string) (pid int, start string) {
	for p, name := range named {
		if name == id && p.session == p.pid && (start == "" || older(p.begun, start)) {
			pid, start = p.pid, p.begun
		}
	}
	return pid, start
}

// older compares two counts of ticks.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// Strays returns the processes of machines whose name begins so and that are not rented.
func Strays(prefix string, rented map[string]bool) map[string][]int {
	out := map[string][]int{}
	for p, name := range named {
		if strings.HasPrefix(name, prefix) && !rented[name] {
			out[name] = append(out[name], p.pid)
		}
	}
	return out
}

// Boot is this boot of the computer; "" where that is not said.
func Boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// Booted is when the computer began; zero where that is not said.
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
