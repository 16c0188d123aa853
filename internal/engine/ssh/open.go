// Package ssh rents out the user's own machines through the system's OpenSSH, with the user's
// configuration, keys and jump hosts. It copies this program to the machines, where it starts the
// agents (package hostd). The user pays for these machines whether they are used or not, so they
// are priced as reserved capacity (docs/design/reserved.md).
package ssh

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh/openssh"
	"scrimp/internal/engine/ssh/setting"
)

// Kind is the kind of engines of this package.
const Kind = "ssh"

// usual is the default timing. A machine that is silent for most of detect is lost, and a sweep reports it.
var usual = engine.Timing{Poll: 2 * time.Second, Sweep: 2 * time.Second, Detect: 30 * time.Second,
	Boot: 3 * time.Minute, Start: 5 * time.Second}

// defaultSeats is the default number of tasks that a machine may run at once: the tasks' requirements limit it.
const defaultSeats = 64

// tunnel is the value of agents for a way to the server through the ssh connection.
const tunnel = "ssh"

// Open opens an engine. It does not connect to the machines yet.
func Open(_ context.Context, s engine.Setting, h engine.Host) (engine.Engine, error) {
	with, err := setting.Read(&s)
	if err != nil {
		return engine.Engine{}, err
	}
	through := s.Agents == "" || s.Agents == tunnel || s.Agents == "socket"
	url := h.Socket
	if !through {
		if url, err = h.AgentURL(s); err != nil {
			return engine.Engine{}, err
		}
	}
	dir := setting.Dir(h.Dir, s.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return engine.Engine{}, err
	}
	exe := h.Exe
	if exe == "" {
		if exe, err = os.Executable(); err != nil {
			return engine.Engine{}, err
		}
	}
	timing := s.Timing.Over(usual)
	d, err := newDriver(s.Name, dir, &with, timing.Detection(), h.Log)
	if err != nil {
		return engine.Engine{}, err
	}
	for n := range with.Hosts {
		m := &with.Hosts[n]
		if m.Join != "" {
			d.addJoining(m, h.Trial)
			continue
		}
		way := &openssh.Host{Name: m.Name, Target: m.SSH, Address: m.Address, Engine: s.Name, SocketName: s.Name + ".sock",
			Dir: dir, Config: with.Config,
			Folder: with.Folder, Exe: exe,
			Programs: with.Programs, URL: url, Log: d.log}
		if h.Trial { // beside the server's socket
			way.SocketName = fmt.Sprintf("%s-%d.sock", s.Name, os.Getpid())
		}
		if through {
			way.Socket = strings.TrimPrefix(h.Socket, "unix://")
		}
		d.add(m, way)
	}
	seats := int(s.Seats)
	if seats == 0 {
		seats = defaultSeats
	}
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: timing, AgentURL: url,
		Users: s.Users, Seats: seats, Client: patient()}, nil
}

// patient returns the client configuration: each request to a machine times out before the client does.
func patient() *engine.ClientConfig {
	c := engine.DefaultClient()
	c.Act = engine.Limit{Every: 5 * time.Millisecond, Burst: 100}
	return &c
}
