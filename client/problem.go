package client

import "fmt"

// Problem is an error that the server answered with, as RFC 9457 has it, and what fixes it.
// Act on Code and Status: the texts are for people.
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"`
	Fix    string `json:"fix,omitempty"`
	// Code says which problem it is where a program may want to act on that; more of them may come.
	Code Code `json:"code,omitempty"`

	Limit *Limit    `json:"limit,omitempty"` // that does not let a job in
	Use   *LimitUse `json:"use,omitempty"`   // what is spent and held of it
}

// Code names a problem. It never changes, as its texts may.
type Code string

// The codes.
const (
	// JobUnknown: there is no such job, or it is of a team that the caller does not see.
	JobUnknown Code = "job_unknown"
)

func (p *Problem) Error() string {
	text := p.Title
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.Fix != "" {
		text += " (" + p.Fix + ")"
	}
	return text
}

// StatusError is an answer that says nothing of its problem: of a proxy, or of no scrimp server.
type StatusError struct {
	Method, Path string
	Status       int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d", e.Method, e.Path, e.Status)
}
