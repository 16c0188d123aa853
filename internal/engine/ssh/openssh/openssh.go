// Package openssh connects to a machine with the system's ssh: it probes the machine, copies the
// program there, and starts the host daemon.
package openssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"scrimp/internal/lib/child"
)

// KnownHosts is the file in an engine's folder with the host keys that were accepted when the engine was added.
const KnownHosts = "known_hosts"

//go:embed probe.sh
var probeScript string

// Host connects to a machine with the system's ssh.
type Host struct {
	Name       string // of the machine, in its engine's settings
	Target     string // ssh's destination: HOST or USER@HOST
	Address    string // address for other machines; empty: detected
	Engine     string
	SocketName string // socket on the machine at which agents reach the server
	Dir        string // the engine's folder, with its machines' host keys
	Config     string // ssh's configuration file; empty: the user's own
	Folder     string // on the machine; empty: the default
	Exe        string
	Programs   map[string]string // paths of this program for other systems
	Socket     string            // the server's socket, forwarded through the connection; empty: agents use URL
	URL        string
	Log        *slog.Logger

	mu    sync.Mutex
	far   string // URL of the socket on the machine
	tried string // ssh's known-hosts files, asked for once
}

// Time limits of single commands.
const (
	probeTime = 40 * time.Second
	copyTime  = 10 * time.Minute
)

// Server returns the URL at which the machine reaches the server, once it is connected.
func (o *Host) Server() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cmp.Or(o.far, o.URL)
}

// options returns the options of every ssh call. Security-relevant options override the user's configuration.
func (o *Host) options(ctx context.Context) []string {
	list := []string{"-T", "-o", "BatchMode=yes", "-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o",
		"PermitLocalCommand=no",
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + o.known(ctx), "-o", "ConnectTimeout=15",
		"-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3", "-o", "RequestTTY=no", "-o", "RemoteCommand=none"}
	if o.Config != "" {
		list = append([]string{"-F", o.Config}, list...)
	}
	return list
}

// known returns the known-hosts files: the engine's and the user's.
func (o *Host) known(ctx context.Context) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tried == "" {
		args := []string{"-G", o.Target}
		if o.Config != "" {
			args = append([]string{"-F", o.Config}, args...)
		}
		out, err := child.Command(ctx, "ssh", args...).Output()
		own := "~/.ssh/known_hosts"
		for line := range strings.Lines(string(out)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "userknownhostsfile "); ok && err == nil {
				own = v
			}
		}
		o.tried = `"` + filepath.Join(o.Dir, KnownHosts) + `" ` + own
	}
	return o.tried
}

func (o *Host) ssh(ctx context.Context, more []string, command ...string) *exec.Cmd {
	args := append(o.options(ctx), more...)
	cmd := child.Command(ctx, "ssh", append(append(args, "--", o.Target), command...)...)
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// probed describes a machine before scrimp runs there.
type probed struct {
	system, shell, dir string
	has                map[string]int64 // installed programs and their sizes
}

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._@+-]*$`)

// probe makes the folder on the machine and describes the machine.
func (o *Host) probe(ctx context.Context) (p probed, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %v: does its login wait for "+
		"something (~/.bashrc, a disk over the network)?", probeTime))
	defer cancel()
	cmd := o.ssh(ctx, nil, "/bin/sh", "-s", "--", quoted(o.Name), quoted(o.SocketName), quoted(o.Folder))
	cmd.Stdin = strings.NewReader(probeScript)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return p, o.explain(err, complaint.String())
	}
	_, text, found := strings.Cut(string(out), "scrimp-probe-1\n")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if !found || len(lines) < 4 {
		return p, fmt.Errorf("%s: unexpected answer of /bin/sh there: %q", o.Target, short(string(out)))
	}
	p = probed{system: system(lines[0], lines[1]), shell: lines[2], dir: lines[3], has: map[string]int64{}}
	if !plainPath.MatchString(p.dir) {
		return p, fmt.Errorf("%s: the folder there would be %q: set another one, with: {folder: /scratch/scrimp}",
			o.Target, p.dir)
	}
	for _, line := range lines[4:] {
		if fields := strings.Fields(line); len(fields) == 2 {
			p.has[fields[1]], _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return p, nil
}

// quoted quotes s for any remote shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "") + "'" }

// system returns Go's name of a system from uname's.
func system(name, machine string) string {
	arch := map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[machine]
	return strings.ToLower(name) + "/" + cmp.Or(arch, machine)
}

func short(s string) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-300):]
}

// program returns the path of this program for the given system.
func (o *Host) program(of string) (string, error) {
	if file := o.Programs[of]; file != "" {
		return file, nil
	}
	if of == runtime.GOOS+"/"+runtime.GOARCH {
		return o.Exe, nil
	}
	return "", fmt.Errorf("%s is %s, and this program is for %s/%s: give the one for it (make dist), with: "+
		"{programs: {%s: FILE}}", o.Target, of, runtime.GOOS, runtime.GOARCH, of)
}

// install copies the program if the machine lacks it, and returns its path there.
func (o *Host) install(ctx context.Context, p *probed) (string, error) {
	file, err := o.program(p.system)
	if err != nil {
		return "", err
	}
	sum, size, err := digest(file)
	if err != nil {
		return "", err
	}
	name := "scrimp-" + sum[:16]
	path := p.dir + "/bin/" + name
	if p.has[name] == size {
		return path, nil
	}
	o.Log.Info("copying the program to a machine", "host", o.Name, "bytes", size)
	ctx, cancel := context.WithTimeoutCause(ctx, copyTime, fmt.Errorf("not copied within %v", copyTime))
	defer cancel()
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	// The script checks the size first, so that an interrupted copy is not used.
	script := fmt.Sprintf(`umask 077; f=%s/bin/.new.$$; cat > $f && test $(wc -c < $f) -eq %d && chmod 700 $f && mv $f %s`+
		` && exit 0; rm -f $f; exit 1`, p.dir, size, path)
	cmd := o.ssh(ctx, nil, "exec /bin/sh -c '"+script+"'")
	cmd.Stdin = f
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("copy the program to %s:%s: %w", o.Target, p.dir, o.explain(err, string(out)))
	}
	return path, nil
}

// digests caches hashes of files, by path, size and time.
var digests sync.Map

func digest(file string) (sum string, size int64, err error) {
	at, err := os.Stat(file)
	if err != nil {
		return "", 0, err
	}
	key := fmt.Sprint(file, at.Size(), at.ModTime().UnixNano())
	if known, ok := digests.Load(key); ok {
		return known.(string), at.Size(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", 0, err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	digests.Store(key, sum)
	return sum, at.Size(), nil
}

// Dial connects to the machine's host daemon. It installs and starts the daemon if necessary.
func (o *Host) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	p, err := o.probe(ctx)
	if err != nil {
		return nil, err
	}
	program, err := o.install(ctx, &p)
	if err != nil {
		return nil, err
	}
	at := p.dir + "/hosts/" + o.Name
	var more []string
	if o.Socket != "" {
		far := at + "/" + o.SocketName
		if len(far) > 100 {
			return nil, fmt.Errorf("%s: the path %s is too long for a socket: set a shorter one, with: {folder: "+
				"/scratch/scrimp}",
				o.Target, far)
		}
		more = []string{"-o", "ExitOnForwardFailure=yes", "-R", far + ":" + o.Socket}
		o.mu.Lock()
		o.far = "unix://" + far
		o.mu.Unlock()
	}
	command := program + " hostd --dir " + at
	if o.Address != "" {
		command += " --address " + quoted(o.Address)
	}
	// Use a login shell for the user's environment.
	if slices.Contains(loginShells, filepath.Base(p.shell)) && plainPath.MatchString(p.shell) {
		command = "exec " + p.shell + " -lc " + `"exec ` + command + `"`
	}
	cmd := o.ssh(context.WithoutCancel(ctx), more, command)
	return begin(cmd, o)
}

// Ping reports whether the machine answers on a new connection.
func (o *Host) Ping(ctx context.Context) bool {
	return o.ssh(ctx, []string{"-o", "ConnectTimeout=2"}, "exit").Run() == nil
}

// explain returns ssh's error with advice.
func (o *Host) explain(err error, complaint string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("ssh is not installed here: install OpenSSH's client (apt install openssh-client)")
	}
	said := short(complaint)
	for _, known := range []struct{ has, fix string }{
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key has changed since it was accepted: if that is right, " +
			"remove " +
			"the old " +
			"one (ssh-keygen -R HOST -f " + filepath.Join(o.Dir, KnownHosts) + ") and run scrimp engine test " + o.Engine +
			" --accept-host-keys"},
		{"Host key verification failed", "its key is not known: compare it and run scrimp engine test " + o.Engine +
			" --accept-host-keys"},
		{"Permission denied", "it accepts none of your keys: ssh-copy-id " + o.Target +
			", or name the key in your ssh configuration"},
		{"Could not resolve hostname", "the name cannot be resolved: correct it in engines.yaml, or name the host in your " +
			"ssh configuration"},
		{"Connection refused", "no sshd listens there: start it (systemctl start ssh), or give its port as " +
			"ssh://USER@HOST:PORT"},
		{"timed out", "nothing responds at that address: is the machine up, and does a firewall block it?"},
		{"kex_exchange_identification", "its sshd closes the connection before its greeting: it has too many at once " +
			"(MaxStartups), or refuses this address (fail2ban, hosts.deny); its log says which: journalctl -u ssh"},
		{"Too many authentication failures", "ssh offers too many keys: name the right one in your ssh configuration, " +
			"IdentityFile with IdentitiesOnly yes"},
		{"No route to host", "no network route to it: is the machine up?"},
		{"remote port forwarding failed", "its sshd forwards no sockets: set AllowStreamLocalForwarding yes there, or " +
			"agents: listen " +
			"and scrimp serve --listen ADDRESS that it reaches"},
		{"No space left", "its disk is full: make room in the folder, or set another one, with: {folder: /scratch/scrimp}"},
	} {
		if strings.Contains(complaint, known.has) {
			return fmt.Errorf("%s: %s (%s)", o.Target, known.fix, last(said))
		}
	}
	if said == "" && err == nil {
		return fmt.Errorf("%s: the connection was closed", o.Target)
	}
	if said == "" {
		return fmt.Errorf("%s: %w", o.Target, err)
	}
	return fmt.Errorf("%s: %s", o.Target, said)
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// loginShells take -lc, and so set what the user's login does.
var loginShells = []string{"bash", "zsh", "ksh", "sh", "dash"}
