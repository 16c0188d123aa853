// Package hostd is the daemon that a server starts on a user's own computer. It starts machines there, each a tree of
// processes with an agent, lists and ends them, and reports what the computer has. It reads requests as lines on
// standard input, writes answers as lines on standard output, and ends when its caller is gone; the machines
// continue. Its state is in a folder, from which the next daemon continues.
package hostd

import (
	"errors"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Greeting begins the line by which hostd reports that it is ready. Output of a login shell before it is ignored.
const Greeting = "scrimp-hostd-1 "

// Request is one request line.
type Request struct {
	ID       int64   `json:"id"`
	Do       string  `json:"do"` // "launch", "end", "list", "facts" or "ping"
	Launch   *Launch `json:"launch,omitempty"`
	Instance string  `json:"instance,omitempty"` // to end
	Server   string  `json:"server,omitempty"`   // URL at which machines reach the server, for facts
}

// Launch requests one machine. Repeating the key starts no other one.
type Launch struct {
	Key   string            `json:"key"`
	Name  string            `json:"name"` // prefix of the machine's id
	Offer market.OfferID    `json:"offer"`
	Rate  money.Rate        `json:"rate"`
	At    time.Time         `json:"at"` // by the server's clock
	Tags  map[string]string `json:"tags,omitempty"`
	Env   map[string]string `json:"env,omitempty"` // of the agent; secret
}

// Answer is one answer line.
type Answer struct {
	ID        int64             `json:"id"`
	Problem   string            `json:"problem,omitempty"` // why the request failed
	Kind      string            `json:"kind,omitempty"`    // of the problem: "no_capacity", "not_found" or "request"
	Instances []engine.Instance `json:"instances,omitempty"`
	Facts     *Facts            `json:"facts,omitempty"`
}

var kinds = map[string]error{"no_capacity": engine.ErrNoCapacity, "not_found": engine.ErrNotFound,
	"request": engine.ErrRequest}

// Err returns the problem of an answer as one of package engine's errors; nil if there is none.
func (a *Answer) Err() error {
	if a.Problem == "" {
		return nil
	}
	if kind := kinds[a.Kind]; kind != nil {
		return &problem{kind, a.Problem}
	}
	return errors.New(a.Problem)
}

// problem carries the text of the remote error and one of package engine's errors.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// Facts describe a computer. Unknown facts are omitted.
type Facts struct {
	OS           string     `json:"os"`
	Arch         string     `json:"arch"`
	CPUs         int        `json:"cpus"`
	Memory       size.Bytes `json:"memory_bytes"`
	Accelerator  string     `json:"accelerator,omitempty"` // as its driver names it
	Accelerators int        `json:"accelerators,omitempty"`
	GPUMemory    size.Bytes `json:"gpu_memory_bytes,omitempty"` // of one
	Driver       string     `json:"driver,omitempty"`           // its version
	NoDriver     string     `json:"no_driver,omitempty"`        // why the driver does not answer although devices exist
	Python       string     `json:"python,omitempty"`           // its version
	Free         size.Bytes `json:"free_bytes"`                 // on the folder's disk
	Now          time.Time  `json:"now"`                        // by its own clock
	Root         bool       `json:"root"`
	Apart        string     `json:"apart,omitempty"`  // why programs cannot have their own users; empty: they can
	Logout       bool       `json:"logout,omitempty"` // a user's processes end with the last session
	Server       string     `json:"server,omitempty"` // why the server is unreachable; empty: reachable or not checked
	Dir          string     `json:"dir"`
	By           string     `json:"by,omitempty"` // URL by which it joined the server; empty: it has not joined
}
