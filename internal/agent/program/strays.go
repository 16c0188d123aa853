package program

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ErrBlind says that this system does not list its processes.
var ErrBlind = errors.New("the processes of this system cannot be listed")

// KillDescendants ends every process that descends from this one, and returns once two
// looks in a row have found none. With Adopt that is all that a program has left behind,
// whatever it did to its session, group and environment. Nothing else of this process may
// wait for a child meanwhile.
func KillDescendants() error {
	for deadline, none := time.Now().Add(killPatience), 0; none < 2; {
		all := processes()
		if len(all) == 0 {
			return ErrBlind
		}
		left := descendants(all)
		if len(left) == 0 {
			none++
			continue
		}
		none = 0
		if time.Now().After(deadline) {
			return fmt.Errorf("end what programs left behind: %d processes are still there after %v", len(left), killPatience)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already, most likely
			collect(pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// descendants are those of this process, zombies too: they may have threads that live.
func descendants(all []process) (found []int) {
	in := map[int]bool{os.Getpid(): true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid], grown = true, true
				found = append(found, p.pid)
			}
		}
	}
	return found
}

// collect takes the exit of a child that has ended, so that it is listed no more.
func collect(pid int) {
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // another's child, or it has not ended yet
}

// CollectOrphans takes the exits of the orphans that Adopt gave this process. Its own
// children lead a session, and whoever started them waits for them.
func CollectOrphans() {
	for _, p := range processes() {
		if p.zombie && p.parent == os.Getpid() && p.pid != p.session {
			collect(p.pid)
		}
	}
}

// Self tells this process from any other that the machine runs, until it boots again.
func Self() string {
	b, err := os.ReadFile("/proc/self/stat")
	p, ok := parseStat(b)
	if err != nil || !ok {
		return "process " + strconv.Itoa(os.Getpid())
	}
	return fmt.Sprintf("process %d of %d", p.pid, p.begun)
}
