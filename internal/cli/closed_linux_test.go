package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// On the local market programs run as the server's user. They can read neither the memory nor the initial environment
// of the server and its market, which hold the database password and the keys of stores.
func TestCloseMemory_ProgramCannotReadServersEnvironment(t *testing.T) {
	lane.Component(t, "host")
	if os.Geteuid() != 0 {
		t.Skip("only root runs a server and a program as another user")
	}
	t.Parallel()
	const user = 519_997
	dir, err := os.MkdirTemp("", "s")
	must.Do(t, err)
	defer os.RemoveAll(dir)
	exe, data := filepath.Join(dir, "scrimp"), filepath.Join(dir, "d")
	own, err := os.ReadFile(testbin.Local.Path(t)) // other users cannot enter its folder
	err = errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(exe, own, 0o755), os.Mkdir(data, 0o700), os.Chown(data, user, user))
	must.Do(t, err)
	as := func(out *bytes.Buffer, args ...string) *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = data, out, out
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + data, "PGPASSWORD=sesame", "AWS_SECRET_ACCESS_KEY=sesame"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{}}}
		return cmd
	}
	var said bytes.Buffer
	server := as(&said, exe, "serve", "--data", data, "--listen", "127.0.0.1:0", "--market", "calm")
	must.Do(t, server.Start())
	defer func() {
		_ = as(&bytes.Buffer{}, exe, "--data", data, "server", "stop", "--now").Run() // and its market
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	eventually.True(t, "it serves", func() bool {
		_, err := os.Stat(filepath.Join(data, "server.sock"))
		return err == nil && as(&bytes.Buffer{}, exe, "--data", data, "offers").Run() == nil
	})
	pids := []int{server.Process.Pid}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		b, _ := os.ReadFile(path)
		if bytes.Contains(b, []byte("\x00market\x00serve\x00")) && bytes.Contains(b, []byte(data)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	if len(pids) != 2 {
		t.Fatalf("the server and its market are %v:\n%s", pids, said.String())
	}
	for _, pid := range pids {
		for _, file := range []string{"environ", "mem", "auxv"} {
			var read bytes.Buffer
			path := fmt.Sprintf("/proc/%d/%s", pid, file)
			if err := as(&read, "head", "-c", "1", path).Run(); err == nil || !strings.Contains(read.String(), "ermission denied") {
				t.Errorf("a program reads %s: %s", path, read.String())
			}
		}
	}
}
