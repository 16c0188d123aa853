package attempt

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"scrimp/internal/agent/host"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/stop"
)

// saves reports whether the agent keeps what the program saves on this machine: on rank 0, which
// publishes, and on every rank if each rank's folder is a share of the checkpoint.
func (g *Attempt) saves() bool { return g.Task.Node == 0 || g.Task.Checkpoint.AllRanks }

// fencedStop returns the stop for an attempt that the server or the store has fenced. In a gang this
// may mean that another machine was lost, so the machine stays and the next pull assigns it.
func (g *Attempt) fencedStop(err error) stop.Request {
	if g.Task.Nodes > 1 {
		return stop.Request{Why: err.Error(), Grace: g.Task.Grace, Fenced: true}
	}
	return stop.Request{Why: err.Error(), AtOnce: true, Fenced: true}
}

// How long a machine of a gang waits for the server: noticeTimeout is how long it delays a signal so
// the server can learn of the notice; reasonTimeout is how long it waits for the reason a program
// failed.
const (
	noticeTimeout = 2 * time.Second
	reasonTimeout = 5 * time.Second
)

// awaitNoticeHeard waits a moment until the server has received a notice. The signal that follows
// reaches the other ranks' programs through their collectives, and those programs may end before
// their agents know why. If the server knows, their agents can ask it.
func (g *Attempt) awaitNoticeHeard(life context.Context) {
	if g.Task.Nodes < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(life, noticeTimeout)
	defer cancel()
	for !g.Box.Heard() {
		select {
		case <-ctx.Done():
			return
		case <-g.heard:
		}
	}
}

// askWhyEnded asks the server whether it is ending the gang, if a gang's program failed without a
// stop: the program notices the end of another rank first. It returns nil if the server knows of no
// stop.
func (g *Attempt) askWhyEnded(life context.Context, exit program.Exit) *stop.Request {
	if g.Task.Nodes < 2 || exit.Status == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(life, reasonTimeout)
	defer cancel()
	select {
	case <-g.heard: // discard an older answer
	default:
	}
	for range 2 { // the first answer may belong to a report sent before the end
		g.Box.Wake()
		select {
		case <-ctx.Done():
		case <-g.heard:
		}
	}
	select {
	case s := <-g.stops:
		g.announceStop(s)
		return &s
	default:
		return nil
	}
}

// masterPort returns the port where the gang's programs meet. Without a gang port it returns a free one.
func (g *Attempt) masterPort() int {
	if g.Task.MasterPort > 0 {
		return g.Task.MasterPort
	}
	return host.FreePort()
}

// network returns the interface on which the gang's other machines reach this one.
func (g *Attempt) network() string {
	if g.Task.Nodes < 2 || g.Task.Node >= len(g.Task.Addresses) {
		return ""
	}
	return host.InterfaceOf(g.Task.Addresses[g.Task.Node])
}

// canMeet returns an error if rank 0's program cannot listen on the gang's port.
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

// awaitAgentStop handles a program that SIGTERM ended although the agent did not send it. It waits a
// moment for the agent to receive a stop too: a shutdown may signal all processes of a machine in
// any order.
func (g *Attempt) awaitAgentStop(life context.Context, exit program.Exit) *stop.Request {
	if !stop.ByTerm(exit) {
		return nil
	}
	timer := time.NewTimer(g.Pace.Also)
	defer timer.Stop()
	select {
	case s := <-g.stops:
		g.announceStop(s)
		return &s
	case <-timer.C:
	case <-life.Done():
	}
	return nil
}
