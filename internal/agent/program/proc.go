package program

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ticksPerSecond is the unit of CPU time in /proc, USER_HZ, which Linux fixes at 100 for user space.
const ticksPerSecond = 100

// process is one process as /proc describes it.
type process struct {
	pid, parent, group, session int
	zombie                      bool
	ticks                       int64 // user and system time, including children it waited for
	rss                         int64 // bytes
	begun                       int64 // start time in ticks after the boot
	name                        string
	own, system                 int64 // ticks: its own without children, and the system time within ticks
	faults                      int64 // major page faults, including children it waited for
	threads                     int
}

// parseStat reads /proc/PID/stat. The name of the command may contain anything, including brackets and spaces.
func parseStat(b []byte) (process, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:open])))
	f := strings.Fields(string(b[end+1:]))
	if err != nil || len(f) < 22 {
		return process{}, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(f[i], 10, 64); return n } // the kernel writes numbers
	return process{
		pid: pid, parent: int(number(1)), group: int(number(2)), session: int(number(3)),
		zombie: f[0] == "Z" || f[0] == "X",
		ticks:  number(11) + number(12) + number(13) + number(14),
		rss:    number(21) * int64(os.Getpagesize()),
		begun:  number(19),
		name:   string(b[open+1 : end]), own: number(11) + number(12), system: number(12) + number(14),
		faults: number(9) + number(10), threads: int(number(17)),
	}, true
}

// processes lists the processes of this system. It returns none without /proc.
func processes() []process {
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	out := make([]process, 0, len(names))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(b); ok {
			out = append(out, p)
		}
	}
	return out
}

// groupAlive reports whether group has a process that is not a zombie. Zombies must not count,
// since nobody reaps them in a container without an init.
func groupAlive(group int) bool {
	if err := syscall.Kill(-group, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	all := processes()
	if len(all) == 0 {
		return true // no /proc: only the signal's result is known
	}
	for _, p := range all {
		if p.group == group && !p.zombie {
			return true
		}
	}
	return false
}

// marked returns the processes whose environment contains mark, except zombies.
func marked(mark string) []int {
	if mark == "" {
		return nil
	}
	var out []int
	for _, p := range processes() {
		if p.zombie || p.pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err == nil && holds(env, mark) {
			out = append(out, p.pid)
		}
	}
	return out
}

func holds(environ []byte, mark string) bool {
	for len(environ) > 0 {
		var one []byte
		one, environ, _ = bytes.Cut(environ, []byte{0})
		if string(one) == mark {
			return true
		}
	}
	return false
}

// allMembers returns the processes of group, those in also, and all their descendants in any group.
func allMembers(all []process, group int, also map[int]bool) []process {
	in := make(map[int]bool)
	for _, p := range all {
		if p.group == group || p.session == group || also[p.pid] {
			in[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && in[p.parent] {
				in[p.pid], grown = true, true
			}
		}
	}
	var out []process
	for _, p := range all {
		if in[p.pid] && !p.zombie {
			out = append(out, p)
		}
	}
	return out
}
