package hostd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/child"

	"golang.org/x/sys/unix"

	"scrimp/internal/lib/size"
)

// longestLook bounds one command that inspects the computer.
const longestLook = 10 * time.Second

// facts inspects the computer and its connection to the server.
func (h *host) facts(ctx context.Context, server string) *Facts {
	f := &Facts{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Now: time.Now().UTC(),
		Root: os.Geteuid() == 0, Dir: h.Dir, Memory: memory(), By: h.Server}
	var disk unix.Statfs_t
	if unix.Statfs(h.Dir, &disk) == nil {
		f.Free = size.Bytes(int64(disk.Bavail) * int64(disk.Bsize)) // other systems have other types
	}
	if out, err := said(ctx, "python3", "-c", "import platform; print(platform.python_version())"); err == nil {
		f.Python = out
	}
	f.gpus(ctx)
	f.Logout = logoutKills()
	if h.Apart != nil {
		if ok, why := h.Apart(filepath.Join(h.Dir, "machine")); !ok {
			f.Apart = why
		}
	}
	if server != "" {
		if err := Reach(ctx, server, h.CA); err != nil {
			f.Server = err.Error()
		}
	}
	return f
}

func said(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	cmd := child.Command(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr)+len(out) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)+string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// memory returns the computer's memory; 0 if unknown.
func memory() size.Bytes {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return size.Bytes(kb << 10)
		}
	}
	return 0
}

// gpus finds the accelerators that nvidia-smi lists. All must be of one kind; programs get no others.
func (f *Facts) gpus(ctx context.Context) {
	devices, _ := filepath.Glob("/dev/nvidia[0-9]*")
	out, err := said(ctx, "nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits")
	if err != nil {
		if len(devices) > 0 {
			f.NoDriver = fmt.Sprintf("%d devices, and nvidia-smi says: %v", len(devices), err)
		}
		return
	}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), ", ")
		if len(fields) != 3 {
			f.NoDriver = "nvidia-smi says " + strings.TrimSpace(line)
			return
		}
		if f.Accelerator != "" && f.Accelerator != fields[0] {
			f.NoDriver = fmt.Sprintf("it has GPUs of several kinds (%s and %s); programs get only the first kind", f.Accelerator,
				fields[0])
			return
		}
		f.Accelerator, f.Driver = fields[0], fields[2]
		f.Accelerators++
		if mib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			f.GPUMemory = size.Bytes(mib << 20)
		}
	}
}

// logoutKills reports whether a user's processes end when the user logs out.
func logoutKills() bool {
	if os.Geteuid() == 0 {
		return false
	}
	files, _ := filepath.Glob("/etc/systemd/logind.conf.d/*.conf")
	kills := false
	for _, file := range append([]string{"/etc/systemd/logind.conf"}, files...) {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "KillUserProcesses="); ok {
				kills = v == "yes" || v == "true" || v == "1"
			}
		}
	}
	_, err := os.Stat("/var/lib/systemd/linger/" + os.Getenv("USER"))
	return kills && err != nil
}

// Reach returns why the server does not answer at its URL; nil if it does.
func Reach(ctx context.Context, server, ca string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	roots, err := Roots(ca)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	transport.Proxy = http.ProxyFromEnvironment
	if u.Scheme == "unix" {
		socket := u.Path
		transport.Proxy = nil
		u = &url.URL{Scheme: "http", Host: "server"}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("healthz").String(), nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s/healthz answers %s", server, answer.Status)
	}
	return nil
}
