package program

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ErrBlind reports that this system does not list its processes.
var ErrBlind = errors.New("the processes of this system cannot be listed")

// KillDescendants kills every descendant of this process, and returns after two consecutive checks
// found none. After Adopt, these are all processes that a program left behind, whatever they did to
// their session, group and environment. No other code of this process may wait for a child
// meanwhile.
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
			return fmt.Errorf("end what programs left behind: %d processes still run after %v", len(left), killPatience)
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
			collect(pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// descendants returns the descendants of this process. It includes zombies, because their threads
// may still run.
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

// collect reaps a child that has ended.
func collect(pid int) {
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // fails for another process' child or a running one
}

// CollectOrphans reaps the orphans that this process adopted. It leaves this process' own children,
// which lead a session, to the code that started them.
func CollectOrphans() {
	for _, p := range processes() {
		if p.zombie && p.parent == os.Getpid() && p.pid != p.session {
			collect(p.pid)
		}
	}
}

// Self returns a name for this process that no other process of the machine has until the next boot.
func Self() string {
	b, err := os.ReadFile("/proc/self/stat")
	p, ok := parseStat(b)
	if err != nil || !ok {
		return "process " + strconv.Itoa(os.Getpid())
	}
	return fmt.Sprintf("process %d of %d", p.pid, p.begun)
}
