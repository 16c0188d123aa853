package place

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The tasks of a machine have different users, which stay the same after a restart of the agent.
func TestClaimUser_DiffersBetweenTasks(t *testing.T) {
	t.Parallel()
	tasks := t.TempDir()
	seen := map[int]string{}
	for i := range 10 {
		name := "job-" + strconv.Itoa(i) + ".1"
		if err := os.Mkdir(filepath.Join(tasks, name), 0o700); err != nil {
			t.Fatal(err)
		}
		user, err := ClaimUser(tasks, name)
		again, err2 := ClaimUser(tasks, name)
		if err != nil || err2 != nil || again != user || seen[user] != "" {
			t.Fatalf("%s has user %d, then %d, which is also that of %q: %v %v", name, user, again, seen[user], err, err2)
		}
		seen[user] = name
	}
}
