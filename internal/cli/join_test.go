package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

// cable forwards connections until it is cut: then no data passes, and neither side learns of it.
type cable struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	cut   chan struct{} // closed when the cable is plugged in again; nil while it works
	conns []net.Conn
}

func newCable(t testing.TB, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	c := &cable{l: l, to: to}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go c.pass(near)
		}
	}()
	return c
}

func (c *cable) pass(near net.Conn) {
	defer func() { _ = near.Close() }()
	c.hold()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	c.mu.Lock()
	c.conns = append(c.conns, near, far)
	c.mu.Unlock()
	go func() { c.copy(far, near); _ = near.Close() }()
	c.copy(near, far)
}

// hold waits while the cable is cut.
func (c *cable) hold() {
	c.mu.Lock()
	cut := c.cut
	c.mu.Unlock()
	if cut != nil {
		<-cut
	}
}

func (c *cable) copy(to io.Writer, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		c.hold()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cable) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = make(chan struct{})
}

func (c *cable) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.cut)
	c.cut = nil
}

// rack is a TLS server and machines that join it, each a process with its own folder.
type rack struct {
	*home
	listen string // HOST:PORT
	cables map[string]*cable
	tokens map[string]string
	joined map[string]*proc.Process
	said   map[string]*text
	served []func() error // wait for the started servers
	ended  bool
}

// end stops the server and then the machines: while they run, the server can terminate their tasks. Each started
// program registers it as a cleanup, because the program's own cleanup would kill it.
func (r *rack) end() {
	if r.ended {
		return
	}
	r.ended = true
	_, _ = r.try("server", "stop", "--now") // the cleanup of newHome reports errors
	for m := range r.joined {
		r.leave(m, syscall.SIGTERM)
	}
	for _, wait := range r.served {
		if err := wait(); err != nil {
			r.t.Error(err)
		}
	}
}

// newRack adds an engine of joining machines and starts its server. A loss is detected within detect seconds.
func newRack(t *testing.T, detect int, machines ...string) *rack {
	t.Helper()
	r := &rack{cables: map[string]*cable{}, tokens: map[string]string{}, joined: map[string]*proc.Process{}, said: map[string]*text{}}
	r.home = newHome(t)
	r.listen = free(t)
	r.certificate()
	args := []string{"engine", "add", "rack", "--rate", "0.80", "--marginal", "0.10", "--json"}
	for _, m := range machines {
		args = append(args, "--join", m)
	}
	for line := range strings.Lines(r.do(args...)) {
		var v struct{ Engine, Machine, Token, Command string }
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Engine != "rack" {
			t.Fatalf("%v: %s", err, line)
		}
		r.tokens[v.Machine] = v.Token
		r.cables[v.Machine] = newCable(t, r.listen)
	}
	settings := filepath.Join(r.data, "engines.yaml")
	text, err := os.ReadFile(settings)
	must.Do(t, err)
	at := strings.Index(string(text), "  - name: rack") // the only engine, so that jobs go nowhere else
	r.write("d/engines.yaml", "engines:\n"+strings.Replace(string(text[at:]), "kind: ssh",
		fmt.Sprintf("kind: ssh\n    timing: {poll: 300ms, sweep: 500ms, detect: %ds}", detect), 1))
	r.begin()
	for _, m := range machines {
		r.join(m)
	}
	return r
}

// certificate creates a self-signed certificate for the server.
func (r *rack) certificate() {
	r.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(r.t, err)
	host, _, err := net.SplitHostPort(r.listen)
	must.Do(r.t, err)
	c := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	must.Do(r.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must.Do(r.t, err)
	r.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	r.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// begin starts a server.
func (r *rack) begin() {
	r.t.Helper()
	cmd, _, errs := r.start("serve", "--listen", r.listen, "--tls-cert", filepath.Join(r.dir, "cert.pem"), "--tls-key",
		filepath.Join(r.dir, "key.pem"))
	wait := sync.OnceValue(func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("serve: %w\n%s", err, errs)
		}
		return nil
	})
	r.served = append(r.served, wait)
	go func() { _ = wait() }()
	r.t.Cleanup(r.end)
	eventually.True(r.t, "the server answers", func() bool {
		out, err := r.try("server", "status")
		return err == nil && !strings.Contains(out, "No server")
	}, errs.String)
}

// join starts scrimp agent join.
func (r *rack) join(machine string) {
	r.t.Helper()
	r.joined[machine], r.said[machine] = r.joinAs(machine, machine)
}

// joinAs starts a machine in a folder that joins with the token of the given machine.
func (r *rack) joinAs(folder, machine string) (*proc.Process, *text) {
	r.t.Helper()
	cmd, said := exec.Command(r.bin, "agent", "join", "https://"+r.cables[machine].l.Addr().String(), "--ca",
		filepath.Join(r.dir, "cert.pem"), "--dir", filepath.Join(r.dir, folder)), &text{}
	cmd.Dir, cmd.Stderr, cmd.Stdin = r.dir, said, strings.NewReader(r.tokens[machine]+"\n")
	p := proc.Start(r.t, cmd)
	r.t.Cleanup(r.end)
	return p, said
}

// leave ends scrimp agent join.
func (r *rack) leave(machine string, sig syscall.Signal) {
	_ = r.joined[machine].Process.Signal(sig)
	_ = r.joined[machine].Wait()
	delete(r.joined, machine)
}

// there returns the machines that have joined.
func (r *rack) there() (names []string) {
	r.t.Helper()
	var v struct{ Joined []api.JoinedMachine }
	must.Do(r.t, json.Unmarshal([]byte(r.do("engine", "list", "--json")), &v))
	for _, m := range v.Joined {
		if !m.Since.IsZero() {
			names = append(names, m.Name)
		}
	}
	return names
}

var rackMachine = regexp.MustCompile(`^rack-(.*)-[0-9a-f]+$`)

// on returns the machine that a job runs on, or "".
func (r *rack) on(job string) string {
	r.t.Helper()
	m := rackMachine.FindStringSubmatch(r.job(job).Machine)
	if m == nil {
		return ""
	}
	return m[1]
}

// counts runs the counting program on a rack, and returns its machine once it has saved.
func (r *rack) counts() (machine string) {
	r.t.Helper()
	r.write("job.yaml", "name: count\ncommand: |\n  "+strings.ReplaceAll(counting, "\n", "\n  ")+
		"\ncheckpoint: {dir: checkpoints, interval: 1s}\n"+counted+"\n")
	r.do("run", "-y", "--detach", "job.yaml")
	r.until("it runs and has saved", func() bool { j := r.job("count"); return j.Phase == "running" && j.SavedStep > 0 })
	return r.on("count")
}

// A job on joining machines continues when its machine joins again, and when another server takes over.
func TestJoin_JobContinuesWhenMachineJoinsAgain(t *testing.T) {
	t.Parallel()
	r := newRack(t, 30, "gpu3", "gpu4")
	r.until("both have joined", func() bool { return len(r.there()) == 2 })
	if out := r.do("engine", "test", "rack"); !strings.Contains(out, "gpu3 server") || !strings.Contains(out, "reaches the server by https://127.") {
		t.Errorf("engine test:\n%s", out)
	}
	if out := r.do("engine", "list"); !strings.Contains(out, "gpu3 joined ") || !strings.Contains(out, "127.") {
		t.Errorf("engine list:\n%s", out)
	}
	first := r.counts()
	r.leave(first, syscall.SIGKILL) // like a unit that restarts
	r.join(first)
	r.until("it has joined again", func() bool { return len(r.there()) == 2 })
	r.do("server", "stop")
	if out, err := r.try("engine", "test", "rack"); err == nil || !strings.Contains(out, first+" joins a running server") {
		t.Errorf("engine test without a server: %v\n%s", err, out)
	}
	r.begin()
	r.until("both have joined the next server", func() bool { return len(r.there()) == 2 })
	r.furtherThan("count", r.furtherThan("count", 0))
	if j := r.job("count"); j.Attempts != 1 || r.on("count") != first {
		t.Errorf("it is on %s in attempt %d, and was on %s", j.Machine, j.Attempts, first)
	}
}

// A cable that is unplugged briefly changes nothing. If it stays unplugged, the job continues elsewhere from its
// checkpoint, and the old machine's program ends when the machine is back.
func TestJoin_JobMovesWhenCableStaysOut(t *testing.T) {
	lane.Nightly(t, "a machine behind a cable counts as lost after 21 s")
	t.Parallel()
	r := newRack(t, 30, "gpu3", "gpu4")
	r.until("both have joined", func() bool { return len(r.there()) == 2 })
	first := r.counts()
	out := time.Now()
	r.cables[first].pull()
	eventually.Past(t, out.Add(6*time.Second)) // of the 21 s after which the machine counts as lost
	r.cables[first].restore()
	r.furtherThan("count", r.furtherThan("count", 0)+20)
	if j := r.job("count"); j.Attempts != 1 || r.on("count") != first {
		t.Fatalf("after a blink it is on %s in attempt %d", j.Machine, j.Attempts)
	}

	old, saved := r.job("count").Machine, r.job("count").SavedStep
	r.cables[first].pull()
	r.until("it goes on elsewhere", func() bool { j := r.job("count"); return j.Attempts == 2 && j.Phase == "running" })
	if second := r.on("count"); second == first || second == "" {
		t.Errorf("behind a cable that is out it is on %q, and was on %q", second, first)
	}
	r.furtherThan("count", int(saved))
	r.cables[first].restore()
	r.until("the old machine is ended", func() bool { return len(r.processes(old)) == 0 })
	r.furtherThan("count", r.furtherThan("count", 0)+10)
	r.do("stop", "count")
	r.until("it is over", func() bool { return r.job("count").Closed })
	var paid receipt.Receipt
	must.Do(t, json.Unmarshal([]byte(r.do("receipt", "--json", "count")), &paid))
	if len(paid.Tries) != 2 || paid.Tries[1].Restored == "" {
		t.Errorf("its attempts: %+v", paid.Tries)
	}
	r.adds("count")
	r.do("ledger", "verify")
}

// A token admits one machine at a time, and none after its revocation. Tokens of other machines admit none.
func TestJoin_TokenAdmitsOneMachine(t *testing.T) {
	t.Parallel()
	r := newRack(t, 8, "gpu3")
	r.until("it has joined", func() bool { return len(r.there()) == 1 })
	second, said := r.joinAs("copy", "gpu3")
	r.until("a second one is refused", func() bool {
		return strings.Contains(said.String(), "another machine has joined under that name")
	})
	_ = second.Process.Kill()
	_ = second.Wait()
	if len(r.there()) != 1 {
		t.Error("the first is gone")
	}
	refused := func(what, token, want string) {
		t.Helper()
		cmd := exec.Command(r.bin, "agent", "join", "https://"+r.listen, "--ca", "cert.pem", "--dir", "other")
		cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(token+"\n")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q in\n%s", what, err, want, out)
		}
	}
	r.do("users", "set", "ann", "--grant", "*=admin")
	var made api.MadeToken
	must.Do(t, json.Unmarshal([]byte(r.do("tokens", "new", "ann", "--json")), &made))
	refused("a user's token", made.Text, "this is not a token for joining")
	refused("a token that is made up", "join.rack.gpu3.AAAA", "the server rejects the token")
	u := user{r.home, filepath.Join(r.dir, "ann")}
	if out, err := u.try(r.tokens["gpu3"]+"\n", "login", "https://"+r.listen, "--ca", "cert.pem", "--token-stdin"); err == nil {
		t.Errorf("a machine's token logs in:\n%s", out)
	}
	before := r.tokens["gpu3"]
	var v struct{ Token string }
	must.Do(t, json.Unmarshal([]byte(r.do("engine", "token", "rack", "gpu3", "--json")), &v))
	r.until("the machine with the old token is cut off", func() bool { return len(r.there()) == 0 })
	refused("a token of before", before, "the server rejects the token")
	r.leave("gpu3", syscall.SIGTERM)
	r.tokens["gpu3"] = v.Token
	r.join("gpu3")
	r.until("it has joined with the new one", func() bool { return len(r.there()) == 1 })
	r.do("engine", "add", "lab", "--join", "x", "--rate", "1")
	r.do("engine", "rm", "rack")
	refused("a token of an engine that was removed", v.Token, "the server rejects the token")
}

// A unit runs agent join, and does not contain the token.
func TestJoinUnit_RunsJoinWithoutToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unit, next, err := joinUnit(t, dir, "--systemd", "--dir", filepath.Join(dir, "a folder, 100 %"), "--address", "10.0.0.7")
	if err != nil {
		t.Fatalf("%v\n%s", err, next)
	}
	for _, want := range []string{"ExecStart=" + testbin.Local.Path(t) + " agent join https://scrimp.example.com:7077 --token-file ",
		`--dir "` + dir + `/a folder, 100 %%"`, "Restart=always", "KillMode=process", "WantedBy=multi-user.target"} {
		if !strings.Contains(unit, want) {
			t.Errorf("no %s in\n%s", want, unit)
		}
	}
	if strings.Contains(unit, "join.rack") {
		t.Errorf("the unit holds the token:\n%s", unit)
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		if !strings.Contains(next, "systemctl daemon-reload") || !strings.Contains(next, "systemctl enable --now scrimp-join") {
			t.Errorf("it does not say how it is started: %s", next)
		}
	} else {
		if !strings.Contains(next, "systemd does not run here") {
			t.Errorf("nobody is told that it cannot be started here: %s", next)
		}
		if _, errs, err := joinUnit(t, dir, "--install", "--dir", dir); err == nil || !strings.Contains(errs, "systemd does not run here") {
			t.Errorf("installed where there is no systemd: %v %s", err, errs)
		}
	}
}

// systemd accepts the unit without warnings.
func TestJoinUnit_SystemdAcceptsIt(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd is not installed")
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"--systemd"}, {"--systemd", "--user", "daemon", "--dir", "/srv/a b"}} {
		unit, said, err := joinUnit(t, dir, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		file := filepath.Join(t.TempDir(), "scrimp-join.service")
		must.Do(t, os.WriteFile(file, []byte(unit), 0o600))
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", file).CombinedOutput(); err != nil ||
			strings.Contains(string(out), "scrimp-join.service:") {
			t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, unit)
		}
	}
}

// joinUnit runs scrimp agent join in a folder, and returns the printed systemd unit and its instructions.
func joinUnit(t *testing.T, dir string, args ...string) (unit, said string, err error) {
	t.Helper()
	var b, e strings.Builder
	cmd := exec.Command(testbin.Local.Path(t), append([]string{"agent", "join", "https://scrimp.example.com:7077"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &b, &e, append(os.Environ(), "SCRIMP_TOKEN=join.rack.gpu3.x")
	err = cmd.Run()
	return b.String(), e.String(), err
}
