// Package hostd is what a server starts on a computer of one's own: it begins machines there, each a tree
// of processes with an agent, lists and ends them, and says what the computer has. It is asked by lines on
// its standard input and answers by lines on its standard output, ends when whoever asks is gone, and what
// it began goes on. What it knows lies in a folder; the next one goes on with that.
package hostd

import (
	"errors"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Greeting is what the line begins with by which hostd says that it is there; what a login shell prints
// before is no answer.
const Greeting = "scrimp-hostd-1 "

// Request is one line that asks.
type Request struct {
	ID       int64   `json:"id"`
	Do       string  `json:"do"` // "launch", "end", "list", "facts" or "ping"
	Launch   *Launch `json:"launch,omitempty"`
	Instance string  `json:"instance,omitempty"` // to end
	Server   string  `json:"server,omitempty"`   // URL that machines reach the server by, for facts
}

// Launch asks for one machine. The same key begins one.
type Launch struct {
	Key   string            `json:"key"`
	Name  string            `json:"name"` // that the machine's id begins with
	Offer market.OfferID    `json:"offer"`
	Rate  money.Rate        `json:"rate"`
	At    time.Time         `json:"at"` // by the server's clock
	Tags  map[string]string `json:"tags,omitempty"`
	Env   map[string]string `json:"env,omitempty"` // of the agent; secret
}

// Answer is one line that answers.
type Answer struct {
	ID        int64             `json:"id"`
	Problem   string            `json:"problem,omitempty"` // why it was not done
	Kind      string            `json:"kind,omitempty"`    // of the problem: "no_capacity", "not_found" or "request"
	Instances []engine.Instance `json:"instances,omitempty"`
	Facts     *Facts            `json:"facts,omitempty"`
}

var kinds = map[string]error{"no_capacity": engine.ErrNoCapacity, "not_found": engine.ErrNotFound,
	"request": engine.ErrRequest}

// Err is the problem of an answer as one of package engine's; nil: there is none.
func (a *Answer) Err() error {
	if a.Problem == "" {
		return nil
	}
	if kind := kinds[a.Kind]; kind != nil {
		return &problem{kind, a.Problem}
	}
	return errors.New(a.Problem)
}

// problem has the words of the far side and one of package engine's errors.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// Facts are what a computer has. What is not known is left out.
type Facts struct {
	OS           string     `json:"os"`
	Arch         string     `json:"arch"`
	CPUs         int        `json:"cpus"`
	Memory       size.Bytes `json:"memory_bytes"`
	Accelerator  string     `json:"accelerator,omitempty"` // as its driver names it
	Accelerators int        `json:"accelerators,omitempty"`
	GPUMemory    size.Bytes `json:"gpu_memory_bytes,omitempty"` // of one
	Driver       string     `json:"driver,omitempty"`           // its version
	NoDriver     string     `json:"no_driver,omitempty"`        // why it does not answer, where there are devices
	Python       string     `json:"python,omitempty"`           // its version
	Free         size.Bytes `json:"free_bytes"`                 // on the disk of the folder
	Now          time.Time  `json:"now"`                        // by its own clock
	Root         bool       `json:"root"`
	Apart        string     `json:"apart,omitempty"`  // why programs cannot have users of their own; "": they can
	Logout       bool       `json:"logout,omitempty"` // what a user began is ended when their last session is
	Server       string     `json:"server,omitempty"` // why the server is not reached; "": it is, or was not asked for
	Dir          string     `json:"dir"`
	By           string     `json:"by,omitempty"` // URL by which it joined the server; "": it did not
}
