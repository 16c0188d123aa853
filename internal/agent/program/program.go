// Package program runs the user's program in its own session, signals all of its processes,
// measures it, and makes sure that no process outlives the agent.
package program

import (
	"crypto/rand"
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

// Spec describes the program to run.
type Spec struct {
	Args   []string
	Dir    string
	Env    []string
	Output *os.File // stdout and stderr; the program writes to the file itself, so no slow reader can block it
	// Terminal is the terminal of the program, instead of Output and no input; nil: none.
	Terminal *os.File
	User     int    // user of the processes, with a group of the same number and no other; 0: the agent's user
	Mark     string // NAME=value, unique to the program, in the environment of all its processes; may be empty
}

// Exit describes how the main process ended.
type Exit struct {
	Status   int  // exit status; 128+n for signal n
	Signaled bool // a signal that it did not handle ended it
}

// Program is a running program: the main process and everything it started.
type Program struct {
	group  int
	mark   string
	main   chan struct{} // closed when the main process has ended
	exit   Exit
	cgroup *cgroup // nil: this process may not make a control group
	guard  *guard
	once   sync.Once
}

// killPatience is how long the kernel may take to remove killed processes.
const killPatience = 10 * time.Second

// Start starts the program. The caller must call Close when it is done with it.
func Start(s Spec) (*Program, error) {
	if len(s.Args) == 0 {
		return nil, errors.New("start the program: it has no command")
	}
	p := &Program{mark: s.Mark, main: make(chan struct{}), cgroup: newCgroup()}
	started := make(chan error, 1)
	go p.run(s, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w%s", s.Args[0], err, remedy(s.Args[0], err))
	}
	g, err := startGuard(p.group, p.cgroup.path())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", s.Args[0], err), p.Kill())
	}
	p.guard = g
	return p, nil
}

// run starts the main process and waits for it. It locks its thread, because the kernel's
// parent-death signal is tied to the thread that started the process.
func (p *Program) run(s Spec, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	env := s.Env
	if s.Mark != "" {
		env = append(append([]string(nil), env...), s.Mark)
	}
	begin := func() (*exec.Cmd, error) {
		cmd := exec.Command(s.Args[0], s.Args[1:]...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = s.Dir, env, ownSession(s.User, p.cgroup)
		if s.Output != nil {
			cmd.Stdout, cmd.Stderr = s.Output, s.Output
		}
		if s.Terminal != nil {
			cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Terminal, s.Terminal, s.Terminal
			cmd.SysProcAttr.Setctty = true
		}
		return cmd, startMain(cmd)
	}
	cmd, err := begin()
	if err != nil && p.cgroup != nil { // a sandbox may allow the group but no process in it
		p.cgroup.remove()
		p.cgroup = nil
		cmd, err = begin()
	}
	if err != nil {
		started <- err
		return
	}
	p.group = cmd.Process.Pid
	_ = preferOOMKill(p.group) // if it fails, the kernel chooses its victim itself
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
	_ = err // the state contains everything to report
	return Exit{Status: 1}
}

// Group returns the id of the process group, which is also the pid of the main process.
func (p *Program) Group() int { return p.group }

// Done is closed when the main process has ended. Other processes of its group may still run.
func (p *Program) Done() <-chan struct{} { return p.main }

// Exit returns how the main process ended. Call it only after Done is closed.
func (p *Program) Exit() Exit { return p.exit }

// Alive reports whether a process of the group is left. It ignores zombies if the system can list processes.
func (p *Program) Alive() bool {
	select {
	case <-p.main:
		return groupAlive(p.group)
	default:
		return true
	}
}

// Signal sends sig to every process of the group. It returns no error if the group has ended.
func (p *Program) Signal(sig syscall.Signal) error {
	if err := syscall.Kill(-p.group, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", p.group, err)
	}
	return nil
}

// strays returns the processes that have left the program's group, as timeout and setsid make them
// do: those of its session and control group, those with its mark, and their descendants.
func (p *Program) strays() []process {
	also := map[int]bool{}
	for _, pid := range append(marked(p.mark), p.cgroup.members()...) {
		also[pid] = true
	}
	return slices.DeleteFunc(allMembers(processes(), p.group, also), func(s process) bool { return s.group == p.group })
}

// Strays reports whether some processes have left the program's group.
func (p *Program) Strays() bool { return len(p.strays()) > 0 }

// SignalStrays sends sig to the groups of processes that have left the program's group.
func (p *Program) SignalStrays(sig syscall.Signal) error {
	var err error
	sent := map[int]bool{syscall.Getpgrp(): true} // never the agent's own group
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

// Kill kills every process of the program and waits until they have ended: those in its control
// group or, without one, those in its process group and those that left it but carry its mark.
func (p *Program) Kill() error {
	if err := p.cgroup.kill(); err != nil {
		return err
	}
	deadline := time.Now().Add(killPatience)
	for {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		strays := marked(p.mark)
		for _, pid := range strays {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		if !p.Alive() && len(strays) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill process group %d: it still exists after %v", p.group, killPatience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Close kills what is left of the program and releases its guard. Calling it twice is safe.
func (p *Program) Close() error {
	err := p.Kill()
	p.once.Do(func() {
		if p.guard != nil {
			p.guard.release()
		}
		p.cgroup.remove()
	})
	return err
}

// guard is a small separate process that waits for the agent to die, which closes the pipe between
// them, and then kills the program's groups. It covers the children of the main process, which the
// kernel's parent-death signal does not reach.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// guardScript is the guard's script. It kills group $1 and all of control group $2, if given, and removes
// that control group.
const guardScript = `read -r word && exit
kill -s KILL -- "-$1" 2>/dev/null
[ -n "$2" ] || exit
echo 1 >"$2/cgroup.kill"
for n in 1 2 3 4 5 6 7 8 9; do rmdir "$2" 2>/dev/null && exit; sleep 1; done`

func startGuard(group int, cgroup string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "scrimp-guard", fmt.Sprint(group), cgroup)
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

// release lets the guard exit without killing anything.
func (g *guard) release() {
	_, err := io.WriteString(g.pipe, "bye\n")
	_ = g.pipe.Close() // the guard has read the word or never will
	if err != nil {
		_ = g.cmd.Process.Kill() // it has ended or is stuck; it must not fire later
	}
	_ = g.cmd.Wait()
	ended(g.cmd)
}

// signals maps the names that a job file may use.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM, "CONT": syscall.SIGCONT,
}

// ParseSignal reads the name of a signal, with or without SIG. An empty name means TERM.
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

// remedy returns advice for a program that does not start, or "".
func remedy(path string, err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return ": the image or the program has another architecture than the machine"
	case errors.Is(err, fs.ErrNotExist) && path == "/bin/sh":
		return ": the image has no shell: use one that has a shell, such as its -slim or -debug variant"
	}
	return ""
}

// NewMark returns a random mark for the processes of one program.
func NewMark() string { return "SCRIMP_PROGRAM=" + strings.ToLower(rand.Text()) }
