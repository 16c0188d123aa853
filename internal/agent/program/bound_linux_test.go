package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
)

func init() { plays["SCRIMP_TEST_BOMB"] = playBomb }

// playBomb is an agent with a low process limit. It needs a process of its own, since a limit
// cannot be raised again.
func playBomb() int {
	const user, most = 519_998, 150
	if err := boundUsers(most); err != nil {
		return say(err)
	}
	p, err := Start(Spec{Args: []string{"/bin/sh", "-c", `(ulimit -u 100000); sh -c 'while :; do sleep 1000 & done' & while :; do sleep 1000 & done`}, Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin"}, User: user})
	if err != nil {
		return say(err)
	}
	defer func() { _ = KillUser(user) }()
	for begun := time.Now(); len(processesOf(user)) < most/2; {
		if time.Since(begun) > eventually.Limit {
			return say("it has not its share")
		}
	}
	if n := len(processesOf(user)); n > most {
		return say(n, "processes")
	}
	if err := exec.Command("/bin/true").Run(); err != nil {
		return say("root is bound too:", err)
	}
	if err := errors.Join(KillUser(user), p.Close()); err != nil || len(processesOf(user)) > 0 {
		return say(len(processesOf(user)), "are left:", err)
	}
	return 0
}

func say(what ...any) int {
	fmt.Println(what...)
	return 1
}

// A task's user that forks without end gets its share of the machine's processes and no more. Root
// keeps running beside it, and all of them can be killed.
func TestBoundUsers_LimitsForkBomb(t *testing.T) {
	lane.Component(t, "host")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "SCRIMP_TEST_BOMB=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// When memory runs out, the kernel kills a program before its agent.
func TestStart_LetsKernelKillProgramBeforeAgent(t *testing.T) {
	// The agent sets the score just after the program has started. The loop waits for the shell's
	// own score, because a child that started earlier keeps the old one. If the score changes while
	// cat reads it, cat prints two lines; read takes one number.
	p, out := start(t, `until read -r n </proc/$$/oom_score_adj && [ "$n" -ge 500 ]; do :; done; sh -c 'cat /proc/self/oom_score_adj'`)
	<-p.Done()
	if said := read(out); said != "500\n" {
		t.Errorf("a child of the program has the score %q, want 500", said)
	}
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if n, bad := strconv.Atoi(strings.TrimSpace(string(own))); err != nil || bad != nil || n >= 500 {
		t.Errorf("the agent's is %s, %v, %v", own, err, bad)
	}
}
