package agent

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

func init() { programs["attack"], programs["swap"] = playAttack, playSwap }

// secret is the content of a file that only root may read, in a folder whose path the attacker knows.
const secret = "only root reads this"

// playAttack saves repeatedly while another process of it swaps the saved files, its outputs and
// its progress with links to TEST_VAULT. That process has left its group and session and carries
// nothing of its environment.
func playAttack() int {
	dir, work := os.Getenv("SCRIMP_CHECKPOINT_DIR"), os.Getenv("PWD")
	progress, home := os.Getenv("SCRIMP_PROGRESS_FILE"), os.Getenv("HOME")
	pairs := []string{}
	lay := func(at string, folder bool) {
		link := filepath.Join(home, "link-"+filepath.Base(at))
		if folder {
			_ = os.MkdirAll(at, 0o700)
			_ = os.WriteFile(filepath.Join(at, "state"), []byte("mine"), 0o600)
			_ = os.Symlink(os.Getenv("TEST_VAULT"), link)
		} else {
			_ = os.WriteFile(at, []byte("{\"step\":1}\n"), 0o600)
			_ = os.Symlink(filepath.Join(os.Getenv("TEST_VAULT"), "steps"), link)
		}
		pairs = append(pairs, at, link)
	}
	lay(dir, true)
	lay(filepath.Join(dir, "below"), true)
	lay(filepath.Join(work, "out"), true)
	lay(progress, false)
	self, _ := os.Executable()
	swap := exec.Command(self, pairs...)
	swap.Env, swap.SysProcAttr = []string{"TEST_PROGRAM=swap", "GOCOVERDIR=" + home}, &syscall.SysProcAttr{Setsid: true}
	if err := swap.Start(); err != nil {
		panic(err)
	}
	for range 60 {
		req, _ := http.NewRequest(http.MethodPost, os.Getenv("SCRIMP_AGENT_URL")+"/v1/saved", strings.NewReader(`{"step":2}`))
		req.Header.Set("Authorization", "Bearer "+os.Getenv("SCRIMP_AGENT_TOKEN"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return 0
}

// playSwap exchanges paths in pairs for as long as it runs.
func playSwap() int {
	for pairs := os.Args[1:]; ; {
		for i := 0; i < len(pairs); i += 2 {
			_ = unix.Renameat2(unix.AT_FDCWD, pairs[i], unix.AT_FDCWD, pairs[i+1], unix.RENAME_EXCHANGE)
		}
	}
}

// A program that constantly swaps its folders with links, even after its end, cannot make the agent
// keep, report or change anything that only root may read.
func TestAgent_IsNotLedOutOfTaskByLinks(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, "")
	top := filepath.Dir(r.config.MachineDir)
	vault := filepath.Join(top, "vault")
	self, err := os.ReadFile(must(os.Executable())) // the task's user cannot enter the test's own folder
	err = errors.Join(err, os.WriteFile(filepath.Join(top, "attacker"), self, 0o755), os.Mkdir(vault, 0o755),
		os.WriteFile(filepath.Join(vault, "state"), []byte(secret), 0o600),
		os.WriteFile(filepath.Join(vault, "steps"), []byte("{\"step\":31337}\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	a := servedBy(t, 1, "")
	a.Args, a.Command, a.Workdir = []string{filepath.Join(top, "attacker")}, "", ""
	a.Env = map[string]string{"TEST_PROGRAM": "attack", "TEST_VAULT": vault}
	r.server.assignment = a
	withStore(r)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if e := told(r.server, endedIn); len(e) != 1 || e[0].Reason != api.EndCompleted {
		t.Fatalf("ended %+v; the program says\n%s", e, r.server.log)
	}
	for _, s := range told(r.server, stepped) {
		if s.Step == 31337 {
			t.Error("the agent read progress through a link")
		}
	}
	blobs := 0
	err = filepath.WalkDir(r.server.kept, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if blobs++; bytes.Contains(b, []byte(secret)) {
			t.Errorf("kept is %s", path)
		}
		return err
	})
	if err != nil || blobs == 0 {
		t.Errorf("%d blobs were looked at, %v", blobs, err)
	}
	for _, name := range []string{"state", "steps"} {
		if st, err := os.Stat(filepath.Join(vault, name)); err != nil || st.Mode() != 0o600 || st.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s is %v, %v", name, st, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(r.config.MachineDir, "tasks")); len(left) > 0 || err != nil {
		t.Errorf("left is %v, %v", left, err)
	}
}

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}
