package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/await"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// calm is a backend that takes all.
type calm struct{}

func (calm) progress(api.Step) error           { return nil }
func (calm) save(context.Context, int64) error { return nil }
func (calm) state() ProgramState               { return ProgramState{} }
func (calm) total() int64                      { return 0 }

// openFiles is how many files this process has open.
func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// Any process of the machine may connect, and send nothing, half a head or a wrong token: the agent keeps its files, and
// the program that has the token is answered.
func TestConnectionsWithoutEndTakeNoFilesOfTheAgent(t *testing.T) {
	p, err := serveProgram(calm{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func(token string) error {
		r, _ := http.NewRequest(http.MethodGet, p.url+"/v1/state", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s, %w", resp.Status, errors.Join(err))
		}
		return errors.Join(err, resp.Body.Close())
	}
	if err := ask(p.token); err != nil { // its connection rests from here on
		t.Fatal(err)
	}
	before := openFiles()
	var mine []net.Conn
	for i := range 3 * mostConnections {
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		mine = append(mine, c)
		_, _ = c.Write([]byte(map[int]string{1: "GET / HTTP/1.1\r\nX: ", 2: "GET / HTTP/1.1\r\nHost: x\r\n\r\n"}[i%3]))
	}
	await.True(t, "the agent lets go of those that are too many", func() bool {
		return openFiles()-before-len(mine) <= mostConnections+1
	})
	if err := ask(p.token); err != nil {
		t.Errorf("the program is not answered: %v", err)
	}
	if ask("wrong") == nil {
		t.Error("a wrong token is taken")
	}
}

// What a task's user leaves on a disk that all may write to, wherever it is mounted, is removed; a disk that machines share
// is another's too, and nobody else's files are touched.
func TestWhatIsLeftOnAScratchDiskIsRemoved(t *testing.T) {
	lane.Component(t, "host")
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root makes files of other users")
	}
	const user = firstUser + 7
	top, mounts := t.TempDir(), strings.Builder{}
	kept := map[string]bool{} // by path, whether it stays
	for kind, stays := range map[string]bool{"ext4": false, "xfs": false, "tmpfs": false, "nfs4": true, "lustre": true} {
		dir := filepath.Join(top, "a "+kind)
		fmt.Fprintf(&mounts, "24 1 8:1 / %s rw - %s /dev/x rw\n", strings.ReplaceAll(dir, " ", `\040`), kind)
		for name, owner := range map[string]int{"mine": user, "open/mine": user, "theirs": user + 1, "roots": 0} {
			path := filepath.Join(dir, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o666), os.Chown(path, owner, owner),
				os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky), os.Chmod(dir, 0o777|os.ModeSticky))
			if err != nil {
				t.Fatal(err)
			}
			kept[path] = stays || owner != user
		}
	}
	file := filepath.Join(top, "mountinfo")
	if err := os.WriteFile(file, []byte(mounts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	defer func(old string) { mountsFile = old }(mountsFile)
	mountsFile = file
	if err := noneShared(user, top); err == nil {
		t.Error("nothing is found to be left")
	}
	if err := endUser(user, top); err != nil {
		t.Error(err)
	}
	for path, stays := range kept {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v, and it is to stay: %v", path, err, stays)
		}
	}
}

// A folder that somebody removes while the agent looks through it is no reason to give the machine up.
func TestAFolderThatGoesWhileItIsLookedThroughIsNoError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := (&shared{user: firstUser}).each(root, dir, 0); err != nil {
		t.Error(err)
	}
}

// An agent takes another program only from whom it can tell that it is its server: over plain HTTP whoever is between
// sends both the program and the hash that it is held against.
func TestAnAgentTakesNoProgramThatSomebodyBetweenMayHaveChanged(t *testing.T) {
	t.Parallel()
	for server, takes := range map[string]bool{
		"https://scrimp.example:7077": true, "unix:///run/server.sock": true, "http://127.0.0.1:7077": true,
		"http://[::1]:7077": true, "http://localhost:7077": true, "http://10.0.0.5:7077": false, "http://scrimp.internal": false,
		"http://127.0.0.1.example.com": false, "http://localhost.example.com": false, "%": false,
	} {
		if unaltered(server) != takes {
			t.Errorf("%s: it takes a program: %v", server, !takes)
		}
	}
	d := &daemon{Config: Config{Server: "http://10.0.0.5:7077", MachineDir: t.TempDir()}} // it would ask through machine, which is nil
	if err := d.update(t.Context(), strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("update: %v", err)
	}
}

// Set-up commands that name files by the thousand are not looked through for minutes: beyond a bound the environment is made.
func TestASetupThatNamesManyFilesIsNotReadWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, make([]byte, mostScript), 0o600); err != nil {
		t.Fatal(err)
	}
	words := ""
	for i := range 40 {
		name := fmt.Sprintf("f%02d", i)
		if err := os.Link(text, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		words += name + " " + name + " "
	}
	uses := func(setup string) bool {
		return (&attempt{a: api.Assignment{Setup: setup}, folders: folders{work: dir}}).usesPython()
	}
	if uses(strings.Repeat("f01 ", 10_000)) || !uses(words) {
		t.Errorf("one file, named often: %v; many: %v", uses(strings.Repeat("f01 ", 10_000)), uses(words))
	}
}
