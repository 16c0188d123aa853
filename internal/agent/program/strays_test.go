package program

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// playReaper adopts orphans, runs a program that leaves processes behind in every way a shell
// offers, ends it, and prints the number of its descendants before and after it kills the strays.
func playReaper() int {
	const leave = `(setsid env -i sleep 1000 &); (env -i setsid sh -c 'env -i setsid sleep 1000 & sleep 1000' &); sleep 0.2`
	if err := Adopt(); err != nil {
		fmt.Println(err)
		return 1
	}
	p, err := Start(Spec{Args: []string{"/bin/sh", "-c", leave}, Env: os.Environ(), Mark: "SCRIMP_MARK=reaper"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	<-p.Done()
	if err := p.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	before := len(descendants(processes()))
	err = KillDescendants()
	fmt.Println(before, err, len(descendants(processes())))
	return 0
}

// The agent finds, kills and reaps what a program leaves behind without group, session and mark.
func TestKillDescendants_LeavesNone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: needs Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "SCRIMP_TEST_REAPER=1")
	cmd.WaitDelay = 10 * time.Second // a stray would hold the pipe
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var before, after int
	var why string
	if _, err := fmt.Sscan(line, &before, &why, &after); err != nil || before < 3 || why != "<nil>" || after != 0 {
		t.Errorf("descendants: %q, want three or more before, no error, none after", line)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
