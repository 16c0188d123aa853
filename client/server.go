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
	Listens string      `json:"listens,omitempty"` // URL of the address that it listens on
	Started time.Time   `json:"started"`
	Market  MarketClock `json:"market"`
	Jobs    int         `json:"jobs"`
	Live    int         `json:"live"` // jobs that wait or run
	Events  uint64      `json:"events"`
	Shared  bool        `json:"shared,omitempty"` // serves others too, and was not started by a command
	// machines of an earlier incarnation that wait for scrimp adopt or scrimp release
	Undecided int `json:"undecided,omitempty"`
	// RetainS is how long after its end a job's work folder, output and older checkpoints are kept, in seconds; 0: for
	// ever. RetainOutputsS is the same of its kept outputs and its newest checkpoint
	RetainS        float64 `json:"retain_s"`
	RetainOutputsS float64 `json:"retain_outputs_s"`
	// where machines are rented, and engines that are not configured any more while
	// machines of theirs may still cost something
	Engines []Engine `json:"engines"`
}

// Dashboard says where the pages of a server are.
type Dashboard struct {
	Address string `json:"address"`       // URL; "": it serves none
	Key     string `json:"key,omitempty"` // opens ADDRESS/open?key=KEY once, within five minutes; "": sign in by a token
}

// Engine is something that machines are rented from, and how it stands.
type Engine struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind,omitempty"`
	Speed    float64   `json:"speed"`           // market seconds a wall second
	State    string    `json:"state"`           // answers, away, not_asked, not_configured
	Error    string    `json:"error,omitempty"` // why it did not answer the last time
	Heard    time.Time `json:"heard,omitzero"`  // when it answered last; zero: never
	Agents   string    `json:"agents,omitempty"`
	Machines int       `json:"machines"` // that cost something now, as far as is known
	// Seats is how many tasks of one user a machine may have at once; 0: one
	Seats int `json:"seats,omitempty"`

	Timing EngineTiming `json:"timing"`
	// Away are the machines of one's own that do not answer, with why.
	Away []AwayEngine `json:"away,omitempty"`
	// Joined are the machines of one's own that connect to the server by themselves
	Joined []JoinedMachine `json:"joined,omitempty"`
}

// JoinedMachine is a machine of one's own that connects to the server by itself.
type JoinedMachine struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since,omitzero"` // it is connected; zero: it is not
	Heard time.Time `json:"heard,omitzero"` // of its last answer; zero: it gave none yet
	From  string    `json:"from,omitempty"` // its address
}

// Finding is one thing that was tried of an engine.
type Finding struct {
	Name string `json:"name"` // what was tried: a machine and "disk", "clock", …
	OK   bool   `json:"ok"`
	Text string `json:"text"` // what was found; where it is not well also what to do
}

// EngineTiming is how an engine behaves in time, in seconds on the wall.
type EngineTiming struct {
	Poll        float64 `json:"poll_s"`        // between two polls
	Sweep       float64 `json:"sweep_s"`       // between two sweeps of its inventory
	Detect      float64 `json:"detect_s"`      // how long a loss can go unnoticed
	Boot        float64 `json:"boot_s"`        // from launch to a running program at most
	Consistency float64 `json:"consistency_s"` // how long its list may lack a machine that runs
	GrantWait   float64 `json:"grant_wait_s"`  // the longest that it takes to grant what it has
	Idle        float64 `json:"idle_s"`        // the longest that a machine waits for the next job; 0: none does
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
	Cost     money.Amount   `json:"cost"` // of all jobs, and of machines that waited for one
	Idle     money.Amount   `json:"idle"` // of these machines
	Currency money.Currency `json:"currency"`
}
