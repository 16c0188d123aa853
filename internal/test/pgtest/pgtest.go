// Package pgtest starts a real PostgreSQL for a test: its own folder, its own
// unix socket, gone when the test ends.
package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Cluster is a running PostgreSQL server.
type Cluster struct {
	dir   string // data/, the socket, mounted disks
	bin   string // folder of initdb and postgres; "" where they are on the path
	owner *syscall.Credential
	names int
	fsync string // on, or off
	where string // address of this machine at which it listens besides its socket; "": none

	mu  sync.Mutex
	cmd *exec.Cmd
	log []string // what the server said last
}

// Start makes a cluster and runs it until the test ends. For a test it syncs nothing, which only a crash of the whole
// machine would show; for a benchmark it does. Where the programs are
// missing the test is skipped.
func Start(t testing.TB) *Cluster {
	t.Helper()
	bin, ok := programs()
	if !ok {
		missing(t, "PostgreSQL (initdb, postgres)")
	}
	dir, err := os.MkdirTemp("", "scrimp-pg-") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &Cluster{dir: dir, bin: bin, fsync: "off"}
	if _, measures := t.(*testing.B); measures {
		c.fsync = "on"
	}
	if os.Getuid() == 0 { // initdb refuses root
		if c.owner, err = servant(); err != nil {
			missing(t, "a user named postgres or nobody ("+err.Error()+")")
		}
		if err := os.Chown(dir, int(c.owner.Uid), int(c.owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := c.command("initdb", "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8",
		"--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.Run(t)
	t.Cleanup(func() { c.Kill(t) })
	return c
}

// PID is the server's process; those that serve its clients are its children.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// programs finds the server's programs: on the path, or where Debian puts them.
func programs() (bin string, ok bool) {
	if _, err := exec.LookPath("initdb"); err == nil {
		if _, err := exec.LookPath("postgres"); err == nil {
			return "", true
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", false
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), true
}

func servant() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// missing skips a test for want of a component.
func missing(t testing.TB, name string) {
	t.Helper()
	t.Skip(name + " is not installed; .ci/run installs it")
}

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	if c.bin != "" {
		name = filepath.Join(c.bin, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	// settings of somebody's own database
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	// it does not outlive a test that is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// Run starts the server, again after Kill, and returns when it takes connections.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	cmd := c.command("postgres", "-D", filepath.Join(c.dir, "data"), "-k", c.dir, "-c",
		"listen_addresses="+c.where, "-c", "max_connections=200",
		"-c", "fsync="+c.fsync, "-c", "synchronous_commit=off") // a store asks for durable commits itself
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.cmd = cmd
	c.mu.Unlock()
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			c.note(lines.Text())
			if strings.Contains(lines.Text(), "ready to accept connections") {
				select {
				case ready <- true:
				default:
				}
			}
		}
		_, _ = io.Copy(io.Discard, said)
		close(ready)
	}()
	if !<-ready {
		t.Fatalf("PostgreSQL does not start:\n%s", strings.Join(c.log, "\n"))
	}
}

// Listen starts the server again so that a network reaches it at an address of this machine, without a password.
func (c *Cluster) Listen(t testing.TB, address, network string) {
	t.Helper()
	c.Kill(t)
	c.where = address
	hba, err := os.OpenFile(filepath.Join(c.dir, "data", "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(hba, "host all all %s trust\n", network)
		err = errors.Join(err, hba.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Run(t)
}

func (c *Cluster) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log = append(c.log, line); len(c.log) > 50 {
		c.log = c.log[1:]
	}
}

// Kill stops the server at once, as a crash of its process does.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	cmd := c.cmd
	c.cmd = nil
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	// "immediate": its children go too, nothing is written any more
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// Signal sends a signal to the server's main process alone.
func (c *Cluster) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Socket is the server's unix socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// Database makes an empty database and returns its address.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	return c.database(t, "")
}

func (c *Cluster) database(t testing.TB, with string) string {
	t.Helper()
	c.mu.Lock()
	c.names++
	name := fmt.Sprintf("d%d", c.names)
	c.mu.Unlock()
	if _, err := c.Query(c.Address("postgres"), "CREATE DATABASE "+name+with); err != nil {
		t.Fatal(err)
	}
	return c.Address(name)
}

// Address is that of a database.
func (c *Cluster) Address(name string) string { return Address(name, c.dir) }

// Address is that of a database of the server whose socket is in a folder.
func Address(name, folder string) string {
	return "postgres://postgres@/" + name + "?host=" + url.QueryEscape(folder)
}

// SmallDatabase makes an empty database on a disk of its own with room for
// about the given bytes more. It needs the right to mount.
func (c *Cluster) SmallDatabase(t testing.TB, bytes int64) string {
	t.Helper()
	dir, err := os.MkdirTemp(c.dir, "disk-")
	if err != nil {
		t.Fatal(err)
	}
	options := "size=" + strconv.FormatInt(bytes+8<<20, 10) // an empty database has 7.3 MB
	if c.owner != nil {
		options += fmt.Sprintf(",uid=%d,gid=%d,mode=700", c.owner.Uid, c.owner.Gid)
	}
	if err := syscall.Mount("scrimp", dir, "tmpfs", 0, options); err != nil {
		missing(t, "the right to mount a tmpfs ("+err.Error()+")")
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	space := filepath.Base(dir)
	if _, err := c.Query(c.Address("postgres"), fmt.Sprintf("CREATE TABLESPACE %q LOCATION '%s'", space,
		dir)); err != nil {
		t.Fatal(err)
	}
	address := c.database(t, fmt.Sprintf(" TABLESPACE %q", space))
	t.Cleanup(func() {
		name, _, _ := strings.Cut(strings.TrimPrefix(address, "postgres://postgres@/"), "?")
		for _, text := range []string{"DROP DATABASE " + name + " WITH (FORCE)", "CHECKPOINT",
			fmt.Sprintf("DROP TABLESPACE %q", space)} {
			if _, err := c.Query(c.Address("postgres"), text); err != nil {
				t.Error(err)
			}
		}
	})
	return address
}

// Query runs statements in one transaction and returns their rows: a line each, columns parted by "|".
func (c *Cluster) Query(address, text string) (string, error) {
	rows, err := query(address, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return strings.Join(rows, "\n"), nil
}
