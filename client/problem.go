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
	// Line is that of the job file, from 1, where it was sent as text
	Line int `json:"line,omitempty"`
	// Problems are all that is wrong with a job file; Field, Line and Fix are of the first
	Problems []JobProblem `json:"problems,omitempty"`
	// Code says which problem it is where a program may want to act on that; more of them may come.
	Code Code `json:"code,omitempty"`

	Limit *Limit    `json:"limit,omitempty"` // that does not let a job in
	Use   *LimitUse `json:"use,omitempty"`   // what is spent and held of it
}

// JobProblem is one thing that is wrong with a job file.
type JobProblem struct {
	Field  string `json:"field,omitempty"` // of the job file, such as resources.cpus
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Cause  string `json:"cause"`
	Fix    string `json:"fix,omitempty"`
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
