package link

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/size"
)

// Minimum free disk space, and the largest tolerated clock difference.
const (
	minDisk = 2 * size.GiB
	maxSkew = time.Minute
)

// Examine checks one machine.
func (l *Link) Examine(ctx context.Context) (list []engine.Finding) {
	say := func(ok bool, what, format string, args ...any) {
		name := l.Host.Name
		if what != "" {
			name += " " + what
		}
		list = append(list, engine.Finding{Name: name, OK: ok, Text: fmt.Sprintf(format, args...)})
	}
	began := time.Now()
	if err := l.Until(ctx); err != nil {
		say(false, "", "%v", err)
		return list
	}
	took := time.Since(began)
	server := l.Way.Server()
	sent := time.Now()
	a, err := l.Ask(ctx, hostd.Request{Do: "facts", Server: server}, 3*AskTime)
	if err != nil {
		say(false, "", "%v", err)
		return list
	}
	f := a.Facts
	server = cmp.Or(f.By, server)
	has := fmt.Sprintf("%s/%s, %d CPUs, %v", f.OS, f.Arch, f.CPUs, f.Memory)
	if f.Accelerators > 0 {
		has += fmt.Sprintf(", %d x %s (driver %s)", f.Accelerators, f.Accelerator, f.Driver)
	}
	say(true, "", "reached in %.1f s: %s; %v free in %s", took.Seconds(), has, f.Free, f.Dir)
	if f.Free < minDisk {
		say(false, "disk", "%v are free in %s: make room, or set another folder, with: {folder: /scratch/scrimp}", f.Free,
			f.Dir)
	}
	if skew := f.Now.Sub(sent.Add(time.Since(sent) / 2)).Round(time.Second); skew.Abs() > maxSkew {
		say(false, "clock", "its clock is %v off: bills use the server's clock, and times in logs will not "+
			"agree. Run there: "+
			"timedatectl set-ntp true", skew)
	}
	if f.NoDriver != "" {
		say(false, "driver", "%s. Run there: nvidia-smi; jobs are given %d GPUs of it", f.NoDriver, f.Accelerators)
	}
	if f.Python == "" {
		say(true, "python", "no python3: jobs that need it end there (apt install python3 python3-venv)")
	}
	if f.Logout {
		say(false, "logout", "a user's processes end at logout. Run there: loginctl enable-linger $USER")
	}
	if f.Apart != "" {
		say(true, "users", "programs run as the user of ssh, since %s: it serves one user of the server at a time", f.Apart)
	}
	switch {
	case f.Server == "":
		say(true, "server", "reaches the server by %s", server)
	case strings.HasPrefix(server, "unix:"):
		say(true, "server", "agents use the ssh connection; no server answers here at the moment")
	default:
		say(false, "server", "does not reach the server by %s: %s. Write agents: ssh to go through the connection, or "+
			"an address "+
			"that it reaches", server, f.Server)
	}
	return list
}
