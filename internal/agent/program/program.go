// Package program runs the user's program in a session of its own, signals the
// whole of it, measures it, and makes sure that nothing of it outlives the agent.
package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Args   []string
	Dir    string
	Env    []string
	Output *os.File // stdout and stderr, written by the program itself: nobody's reader can block it
	User   int      // whose the processes are, with a group of that number and no other; 0: ours
	Mark   string   // NAME=value, unique to the program, in the environment of all its processes; "" for none
}

// Exit is how the main process ended.
type Exit struct {
	Status   int  // exit status; 128+n for signal n
	Signaled bool // ended by a signal that it did not handle
}

// Program is a running program: the main process and all that it started.
type Program struct {
	group int
	mark  string
	main  chan struct{} // closed when the main process has ended
	exit  Exit
	cage  *cage // nil: this process may make none
	guard *guard
	once  sync.Once
}

// killPatience is how long the kernel may take to remove killed processes.
const killPatience = 10 * time.Second

// Start starts the program. The caller must call Close when it is through with it.
func Start(s Spec) (*Program, error) {
	if len(s.Args) == 0 {
		return nil, errors.New("start the program: it has no command")
	}
	p := &Program{mark: s.Mark, main: make(chan struct{}), cage: newCage()}
	started := make(chan error, 1)
	go p.run(s, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w%s", s.Args[0], err, remedy(s.Args[0], err))
	}
	g, err := startGuard(p.group, p.cage.path())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", s.Args[0], err), p.Kill())
	}
	p.guard = g
	return p, nil
}

// run starts the main process and waits for it. It keeps its thread: the
// kernel's parent-death signal is tied to the thread that started the process.
func (p *Program) run(s Spec, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	env := s.Env
	if s.Mark != "" {
		env = append(append([]string(nil), env...), s.Mark)
	}
	begin := func() (*exec.Cmd, error) {
		cmd := exec.Command(s.Args[0], s.Args[1:]...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = s.Dir, env, ownSession(s.User, p.cage)
		if s.Output != nil {
			cmd.Stdout, cmd.Stderr = s.Output, s.Output
		}
		return cmd, startMain(cmd)
	}
	cmd, err := begin()
	if err != nil && p.cage != nil { // a sandbox may let one be made, and no process be started in it
		p.cage.remove()
		p.cage = nil
		cmd, err = begin()
	}
	if err != nil {
		started <- err
		return
	}
	p.group = cmd.Process.Pid
	_ = goesFirst(p.group) // it is the kernel's choice otherwise
	started <- nil
	err = cmd.Wait()
	ended(cmd)
	p.exit = exitOf(cmd.ProcessState, err)
	close(p.main)
}

func exitOf(state *os.ProcessState, err error) Exit {
	if state == nil {
		return Exit{Status: 1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Status: 128 + int(ws.Signal()), Signaled: true}
	}
	if status := state.ExitCode(); status >= 0 {
		return Exit{Status: status}
	}
	_ = err // the state says all that is reported
	return Exit{Status: 1}
}

// Group is the id of the process group, which is also the main process's.
func (p *Program) Group() int { return p.group }

// Done is closed when the main process has ended. Others of its group may still run.
func (p *Program) Done() <-chan struct{} { return p.main }

// Exit returns how the main process ended. It may be asked after Done is closed.
func (p *Program) Exit() Exit { return p.exit }

// Alive reports whether any process of the group is left, zombies aside where the system can tell.
func (p *Program) Alive() bool {
	select {
	case <-p.main:
		return groupAlive(p.group)
	default:
		return true
	}
}

// Signal sends sig to every process of the group. A group that is gone is no error.
func (p *Program) Signal(sig syscall.Signal) error {
	if err := syscall.Kill(-p.group, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", p.group, err)
	}
	return nil
}

// strays are the processes of the program that have left its group, as timeout and setsid make them do: those of its
// session and its control group, those with its mark, and what descends from them.
func (p *Program) strays() []process {
	also := map[int]bool{}
	for _, pid := range append(marked(p.mark), p.cage.members()...) {
		also[pid] = true
	}
	return slices.DeleteFunc(family(processes(), p.group, also), func(s process) bool { return s.group == p.group })
}

// Strays reports whether the program has processes that have left its group.
func (p *Program) Strays() bool { return len(p.strays()) > 0 }

// SignalStrays sends sig to the groups of the processes that have left the program's.
func (p *Program) SignalStrays(sig syscall.Signal) error {
	var err error
	sent := map[int]bool{syscall.Getpgrp(): true} // never ours
	for _, s := range p.strays() {
		if s.group <= 1 || sent[s.group] {
			continue
		}
		sent[s.group] = true
		if e := syscall.Kill(-s.group, sig); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, fmt.Errorf("signal process group %d: %w", s.group, e))
		}
	}
	return err
}

// Kill ends every process of the program at once, and waits until they are gone: those of its control group,
// and where it has none those of its group and those that left it but carry its mark.
func (p *Program) Kill() error {
	if err := p.cage.kill(); err != nil {
		return err
	}
	deadline := time.Now().Add(killPatience)
	for {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		strays := marked(p.mark)
		for _, pid := range strays {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already, most likely
		}
		if !p.Alive() && len(strays) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill process group %d: it is still there after %v", p.group, killPatience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Close kills what is left of the program and releases its guard. It may be called twice.
func (p *Program) Close() error {
	err := p.Kill()
	p.once.Do(func() {
		if p.guard != nil {
			p.guard.release()
		}
		p.cage.remove()
	})
	return err
}

// guard is a small process of its own that waits for the agent to die, which
// closes the pipe between them, and then kills the program's groups. It covers
// what the kernel's parent-death signal does not: the children of the main process.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// watch kills the group $1 and all of the control group $2, where there is one, and removes that.
const watch = `read -r word && exit
kill -s KILL -- "-$1" 2>/dev/null
[ -n "$2" ] || exit
echo 1 >"$2/cgroup.kill"
for n in 1 2 3 4 5 6 7 8 9; do rmdir "$2" 2>/dev/null && exit; sleep 1; done`

func startGuard(group int, cage string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", watch, "scrimp-guard", fmt.Sprint(group), cage)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := startMain(cmd); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	return &guard{cmd, pipe}, nil
}

// release lets the guard go in peace.
func (g *guard) release() {
	_, err := io.WriteString(g.pipe, "bye\n")
	_ = g.pipe.Close() // the word is what counts
	if err != nil {
		_ = g.cmd.Process.Kill() // it is gone or stuck; either way it must not fire later
	}
	_ = g.cmd.Wait()
	ended(g.cmd)
}

// signals that a job file may name.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT,
}

// ParseSignal reads the name of a signal, with or without SIG. "" is TERM.
func ParseSignal(name string) (syscall.Signal, error) {
	if name == "" {
		return syscall.SIGTERM, nil
	}
	sig, ok := signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	if !ok {
		return 0, fmt.Errorf("signal %q is not known: use TERM, INT, HUP, QUIT, USR1 or USR2", name)
	}
	return sig, nil
}

// remedy says what to do about a program that does not start; "": nobody knows.
func remedy(path string, err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return ": the image is of another architecture than the machine, or the program is"
	case errors.Is(err, fs.ErrNotExist) && path == "/bin/sh":
		return ": the image has no shell: take one that has, such as the -slim or -debug variant of it"
	}
	return ""
}
