package program

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// mains holds the processes that this package has started and not yet waited for. After Adopt,
// every other child of this process is something that a program left behind.
var mains = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// startMain starts a command and registers it in the same step.
func startMain(cmd *exec.Cmd) error {
	DefaultSignals()
	mains.Lock()
	defer mains.Unlock()
	err := cmd.Start()
	if err == nil {
		mains.pids[cmd.Process.Pid] = true
	}
	return err
}

// ended removes a command that was waited for.
func ended(cmd *exec.Cmd) {
	mains.Lock()
	defer mains.Unlock()
	delete(mains.pids, cmd.Process.Pid)
}

// KillOrphans kills what ended programs left behind: every child of this process that it did not
// start as a program, and its descendants. Only a process that has called Adopt and runs at most
// one program may call it, since it cannot tell whose orphan a process is. It returns after two
// consecutive checks found none.
func KillOrphans() error {
	for deadline, none := time.Now().Add(killPatience), 0; none < 2; time.Sleep(5 * time.Millisecond) {
		left, err := orphans()
		switch {
		case err != nil:
			return err
		case len(left) == 0:
			none++
			continue
		case time.Now().After(deadline):
			return fmt.Errorf("end what a program left behind: %d processes still run after %v", len(left), killPatience)
		}
		none = 0
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
	}
	return nil
}

// orphans returns the living orphans and their descendants.
func orphans() (list []int, err error) {
	mains.Lock()
	defer mains.Unlock()
	all := processes()
	if len(all) == 0 {
		return nil, ErrBlind
	}
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			adopted := p.parent == os.Getpid() && !mains.pids[p.pid]
			if !in[p.pid] && (adopted || in[p.parent]) {
				in[p.pid], grown = true, true
				if !p.zombie {
					list = append(list, p.pid)
				}
			}
		}
	}
	return list, nil
}
