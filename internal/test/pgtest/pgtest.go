// Package pgtest starts a real PostgreSQL for a test, with a folder and a unix socket of its own, until the test
// ends.
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

	"scrimp/internal/test/must"
)

// Cluster is a running PostgreSQL server.
type Cluster struct {
	dir   string // contains data/, the socket and mounted disks
	bin   string // folder of initdb and postgres; "": on the PATH
	owner *syscall.Credential
	names int
	fsync string // on or off
	where string // address of this host to listen on besides the socket; "": none

	mu  sync.Mutex
	cmd *exec.Cmd
	log []string // the server's last output
}

// Start runs a cluster until the test ends. For a test it does not sync, since only a crash of the host would show
// that; for a benchmark it does. It skips the test if the programs are missing.
func Start(t testing.TB) *Cluster {
	t.Helper()
	bin, ok := programs()
	if !ok {
		missing(t, "PostgreSQL (initdb, postgres)")
	}
	dir, err := os.MkdirTemp("", "scrimp-pg-") // short: a socket's path has at most 107 bytes
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &Cluster{dir: dir, bin: bin, fsync: "off"}
	if _, measures := t.(*testing.B); measures {
		c.fsync = "on"
	}
	if os.Getuid() == 0 { // initdb refuses root
		if c.owner, err = servant(); err != nil {
			missing(t, "a user named postgres or nobody ("+err.Error()+")")
		}
		must.Do(t, os.Chown(dir, int(c.owner.Uid), int(c.owner.Gid)))
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

// PID returns the server's process; those for its clients are its children.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// programs finds the server's programs: on the PATH, or where Debian installs them.
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

// missing skips a test because of a missing component.
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
	// remove settings for the developer's own database
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	// it ends with the test process, even if that is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// Run starts the server, again after Kill, and returns when it accepts connections.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	cmd := c.command("postgres", "-D", filepath.Join(c.dir, "data"), "-k", c.dir, "-c",
		"listen_addresses="+c.where, "-c", "max_connections=200",
		"-c", "fsync="+c.fsync, "-c", "synchronous_commit=off") // the store requests durable commits itself
	said, err := cmd.StderrPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
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

// Listen restarts the server so that a network can reach it at an address of this host, without a password.
func (c *Cluster) Listen(t testing.TB, address, network string) {
	t.Helper()
	c.Kill(t)
	c.where = address
	hba, err := os.OpenFile(filepath.Join(c.dir, "data", "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(hba, "host all all %s trust\n", network)
		err = errors.Join(err, hba.Close())
	}
	must.Do(t, err)
	c.Run(t)
}

func (c *Cluster) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.log = append(c.log, line); len(c.log) > 50 {
		c.log = c.log[1:]
	}
}

// Kill stops the server at once, as if its process crashed.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.mu.Lock()
	cmd := c.cmd
	c.cmd = nil
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	// "immediate": its children end, too, and nothing more is written
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// Signal sends a signal to the server's main process only.
func (c *Cluster) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	must.Do(t, c.cmd.Process.Signal(s))
}

// Socket returns the server's unix socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// Database creates an empty database and returns its address.
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

// Address returns the address of a database.
func (c *Cluster) Address(name string) string { return Address(name, c.dir) }

// Address returns the address of a database on the server with its socket in a folder.
func Address(name, folder string) string {
	return "postgres://postgres@/" + name + "?host=" + url.QueryEscape(folder)
}

// SmallDatabase creates an empty database on a disk of its own with room for about the given bytes. It needs the
// right to mount.
func (c *Cluster) SmallDatabase(t testing.TB, bytes int64) string {
	t.Helper()
	dir, err := os.MkdirTemp(c.dir, "disk-")
	must.Do(t, err)
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

// Query runs statements in one transaction and returns their rows: one per line, with columns separated by "|".
func (c *Cluster) Query(address, text string) (string, error) {
	rows, err := query(address, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", text, err)
	}
	return strings.Join(rows, "\n"), nil
}
