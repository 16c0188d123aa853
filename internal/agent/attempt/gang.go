package attempt

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"scrimp/internal/agent/host"
	"scrimp/internal/agent/program"
)

// saves reports whether what the program saves on this machine is kept: on rank 0, which
// publishes, and on all where each rank's folder is a part of the checkpoint.
func (g *Attempt) saves() bool { return g.Task.Node == 0 || g.Task.Checkpoint.AllRanks }

// fencedBy is the end of an attempt that the server or the store says is over. In a gang that is how
// a machine may hear of another one's loss: the pull says what it is for now.
func (g *Attempt) fencedBy(err error) stop {
	if g.Task.Nodes > 1 {
		return stop{why: err.Error(), grace: g.Task.Grace, fenced: true}
	}
	return stop{why: err.Error(), at: true, fenced: true}
}

// How long a gang's machine waits for the server: with a signal until the server knows of the
// notice, and with its word on a program that failed.
const (
	noticeTime = 2 * time.Second
	wordTime   = 5 * time.Second
)

// letServerKnow waits a moment until the server has heard of a notice. The signal that follows
// reaches the other ranks' programs through their collectives, and those may end before their
// agents hear why: an agent that asks then is told.
func (g *Attempt) letServerKnow(life context.Context) {
	if g.Task.Nodes < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(life, noticeTime)
	defer cancel()
	for !g.Box.Heard() {
		select {
		case <-ctx.Done():
			return
		case <-g.heard:
		}
	}
}

// whyEnded asks the server, where a gang's program has failed unasked, whether the gang is being
// ended: a program notices first that another rank's has gone. nil: the server knows of nothing.
func (g *Attempt) whyEnded(life context.Context, exit program.Exit) *stop {
	if g.Task.Nodes < 2 || exit.Status == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(life, wordTime)
	defer cancel()
	select {
	case <-g.heard: // an older answer
	default:
	}
	for range 2 { // the first may be to a report from before the end
		g.Box.Wake()
		select {
		case <-ctx.Done():
		case <-g.heard:
		}
	}
	select {
	case s := <-g.stops:
		g.tellStop(s)
		return &s
	default:
		return nil
	}
}

// masterPort is where the gang's programs meet; on a machine of its own, one that is free.
func (g *Attempt) masterPort() int {
	if g.Task.MasterPort > 0 {
		return g.Task.MasterPort
	}
	return freePort()
}

// network is the interface by which the gang's other machines reach this one.
func (g *Attempt) network() string {
	if g.Task.Nodes < 2 || g.Task.Node >= len(g.Task.Addresses) {
		return ""
	}
	return host.InterfaceOf(g.Task.Addresses[g.Task.Node])
}

// canMeet reports why rank 0's program cannot listen where the others look for it.
func (g *Attempt) canMeet() error {
	if g.Task.Nodes < 2 || g.Task.Node > 0 || g.Task.MasterPort == 0 {
		return nil
	}
	l, err := net.Listen("tcp", ":"+strconv.Itoa(g.Task.MasterPort))
	if err != nil {
		return fmt.Errorf("the gang cannot meet: %w", err)
	}
	return l.Close()
}

// freePort returns a port that nobody listens on now.
func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 29500 // torchrun's own default
	}
	port := 29500
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	_ = l.Close() // it is given up for the program
	return port
}
