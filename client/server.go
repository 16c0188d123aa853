package client

import (
	"time"

	"scrimp/money"
)

// StopServer asks the server to leave. Now also gives back all machines and
// stops the market; otherwise both go on and the next server adopts them.
type StopServer struct {
	Now bool `json:"now"`
}

// Server says who answers.
type Server struct {
	Version string      `json:"version"`
	Build   string      `json:"build"` // hash of the program
	PID     int         `json:"pid"`
	Dir     string      `json:"dir"`
	Started time.Time   `json:"started"`
	Market  MarketClock `json:"market"`
	Jobs    int         `json:"jobs"`
	Live    int         `json:"live"` // jobs that wait or run
	Events  uint64      `json:"events"`
	Shared  bool        `json:"shared,omitempty"` // serves others too, and was not started by a command
	// machines of an earlier incarnation that wait for scrimp adopt or scrimp release
	Undecided int `json:"undecided,omitempty"`
}

// Undecided is a machine that an earlier incarnation of the log rented: the log was
// restored or copied since, so that another server may have it.
type Undecided struct {
	Instance string `json:"instance"`
	Offer    string `json:"offer"`
	Job      string `json:"job,omitempty"` // that runs on it; "": none is known

	// Ended says that it has ended by itself: what its job does next is still open.
	Ended    bool           `json:"ended,omitempty"`
	Since    time.Time      `json:"since,omitzero"` // it is billed; zero where it has ended
	Cost     *money.Amount  `json:"cost,omitempty"` // so far; nil where it has ended
	Currency money.Currency `json:"currency,omitempty"`
}

// Ownership says whether machines of an earlier incarnation are this server's (adopt) or
// another's (release).
type Ownership struct {
	Instance string `json:"instance,omitempty"` // empty: all that wait
	Adopt    bool   `json:"adopt"`
}

// Verified is the outcome of a check of the ledger.
type Verified struct {
	OK       bool           `json:"ok"`
	Problem  string         `json:"problem,omitempty"`
	Events   uint64         `json:"events"`
	Postings int            `json:"postings"`
	Head     Hash           `json:"head"`
	Jobs     int            `json:"jobs"`
	Cost     money.Amount   `json:"cost"`
	Currency money.Currency `json:"currency"`
}
