package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

func TestStart_KillsTheWholeGroupWhenTheTestEnds(t *testing.T) {
	var child int
	t.Run("starts a program with a child", func(t *testing.T) {
		cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
		out, err := cmd.StdoutPipe()
		must.Do(t, err)
		Start(t, cmd)
		line, err := bufio.NewReader(out).ReadString('\n')
		must.Do(t, err)
		if child, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
			t.Fatal(err)
		}
	})
	eventually.True(t, "the child has ended", func() bool {
		state, ok := stateOf(child)
		return !ok || state == "Z" || state == "X"
	}, func() string { return fmt.Sprint("process ", child) })
}

// stateOf returns the state of a process in the notation of /proc; ok is false if there is no such process.
func stateOf(pid int) (state string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ = strings.Cut(rest, " ")
	return state, true
}
