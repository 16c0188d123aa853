package client

import "fmt"

// Problem is an error response of the server as in RFC 9457, with its fix. Programs should use Code and Status: the
// texts are for people.
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Field  string `json:"field,omitempty"`
	Fix    string `json:"fix,omitempty"`
	// Line is the line of the job file, from 1, if it was sent as text.
	Line int `json:"line,omitempty"`
	// Problems lists all errors of a job file; Field, Line and Fix are those of the first.
	Problems []JobProblem `json:"problems,omitempty"`
	// Code identifies a problem that a program may want to handle. New codes may be added.
	Code Code `json:"code,omitempty"`

	Limit *Limit    `json:"limit,omitempty"` // limit that refuses a job
	Use   *LimitUse `json:"use,omitempty"`   // spent and held under it
}

// JobProblem is an error in a job file.
type JobProblem struct {
	Field  string `json:"field,omitempty"` // of the job file, such as resources.cpus
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Cause  string `json:"cause"`
	Fix    string `json:"fix,omitempty"`
}

// Code identifies a problem. Codes never change, unlike texts.
type Code string

// The codes.
const (
	// JobUnknown: the job does not exist, or belongs to a team that the caller does not see.
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

// StatusError is an error response without a problem, for example from a proxy or from a server that is not scrimp.
type StatusError struct {
	Method, Path string
	Status       int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d", e.Method, e.Path, e.Status)
}
