package engine

import (
	"context"
	"errors"
	"net"
	"time"
)

// Joiner is what a driver also does whose machines connect to the server by themselves, each with a token.
type Joiner interface {
	// Admits returns the machine whose token it is, by its name; false: it is no machine's.
	Admits(token string) (machine string, ok bool)
	// Claim takes the place of the machine whose token it is, for a session that the machine named at random
	// when it began. The caller ends it. ErrTaken: another session has the place, and answers.
	Claim(ctx context.Context, token, session string) (Seat, error)
	// Joined are the machines that come by themselves, and which are there.
	Joined() []Joined
}

// Seat is the place of a machine that has joined.
type Seat interface {
	// Serve speaks with the machine until the connection or ctx ends, the token is good no more, or the same
	// machine comes by a newer one. It closes the connection.
	Serve(ctx context.Context, conn net.Conn) error
	// Close gives up a place that was never served.
	Close()
}

// Joined is a machine that comes by itself.
type Joined struct {
	Name  string
	Since time.Time // it is connected; zero: it is not
	Heard time.Time // of its last answer; zero: it gave none
	From  string    // its address
}

// What keeps a machine from joining.
var (
	ErrTaken    = errors.New("another machine has joined by that name, and answers")
	ErrStranger = errors.New("the token is no machine's")
)
