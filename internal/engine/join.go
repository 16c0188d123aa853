package engine

import (
	"context"
	"errors"
	"net"
	"time"
)

// Joiner is implemented by drivers whose machines connect to the server themselves, each with a token.
type Joiner interface {
	// Admits returns the name of the machine that a token belongs to; ok is false if there is none.
	Admits(token string) (machine string, ok bool)
	// Claim reserves the place of a token's machine for a session, which the machine named at
	// random when it started. The caller must close the seat. It returns ErrTaken if another
	// session has the place and responds.
	Claim(ctx context.Context, token, session string) (Seat, error)
	// Joined returns the machines that connect themselves, with the state of their connections.
	Joined() []Joined
}

// Seat is the place of a machine that has joined.
type Seat interface {
	// Serve talks to the machine until the connection or ctx ends, the token becomes invalid, or
	// the same machine connects again. It closes the connection.
	Serve(ctx context.Context, conn net.Conn) error
	// Close releases a place that was never served.
	Close()
}

// Joined is a machine that connects itself.
type Joined struct {
	Name  string
	Since time.Time // when it connected; zero: it is not connected
	Heard time.Time // time of its last response; zero: none
	From  string    // its address
}

// Reasons why a machine cannot join.
var (
	ErrTaken    = errors.New("another machine has joined under that name, and responds")
	ErrStranger = errors.New("the token belongs to no machine")
)
