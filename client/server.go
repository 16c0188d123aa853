package client

import (
	"time"

	"scrimp/money"
)

// StopServer is a request to stop the server. Now also terminates all machines and stops the market; otherwise both
// go on and the next server adopts them.
type StopServer struct {
	Now bool `json:"now"`
}

// Server describes the server.
type Server struct {
	Version string      `json:"version"`
	Build   string      `json:"build"` // identifies the executable: another build has another value
	PID     int         `json:"pid"`
	Dir     string      `json:"dir"`
	Listens string      `json:"listens,omitempty"` // URL of the address that it listens on
	Started time.Time   `json:"started"`
	Market  MarketClock `json:"market"`
	Jobs    int         `json:"jobs"`
	Live    int         `json:"live"` // jobs that wait or run
	Events  uint64      `json:"events"`
	Shared  bool        `json:"shared,omitempty"` // serves several users, and was not started by a command
	// machines of an earlier incarnation that wait for scrimp adopt or scrimp release
	Undecided int `json:"undecided,omitempty"`
	// RetainS is how long a job's work folder, output and older checkpoints are kept after its end, in seconds; 0:
	// for ever. RetainOutputsS is the same for its kept outputs and its newest checkpoint.
	RetainS        float64 `json:"retain_s"`
	RetainOutputsS float64 `json:"retain_outputs_s"`
	// engines, including those that are no longer configured but whose machines may still cost money
	Engines []Engine `json:"engines"`
	// Charges lists the server's own prices of storing and transferring data, which replace the built-in ones.
	Charges []Charge `json:"charges,omitempty"`
}

// Charge is a provider's price of storing or transferring a gigabyte.
type Charge struct {
	Provider string         `json:"provider"`
	What     string         `json:"what"` // storage-gb-month, transfer-gb-region or transfer-gb-out
	Price    money.Rate     `json:"price"`
	Currency money.Currency `json:"currency"`
}

// Dashboard is the address of a server's pages.
type Dashboard struct {
	Address string `json:"address"`       // URL; "": no pages
	Key     string `json:"key,omitempty"` // opens ADDRESS/open?key=KEY once, within five minutes; "": sign in with a token
}

// Engine is something that machines are rented from, with its state.
type Engine struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind,omitempty"`
	Speed    float64   `json:"speed"`           // market seconds per wall second
	State    string    `json:"state"`           // answers, away, not_asked, not_configured
	Error    string    `json:"error,omitempty"` // why it did not answer the last time
	Heard    time.Time `json:"heard,omitzero"`  // time of its last answer; zero: never
	Agents   string    `json:"agents,omitempty"`
	Machines int       `json:"machines"` // known machines that cost money now
	// Seats is the number of tasks of one user that a machine may have at once; 0: one.
	Seats int `json:"seats,omitempty"`

	Timing EngineTiming `json:"timing"`
	// Away lists one's own machines that do not answer, with the errors.
	Away []AwayEngine `json:"away,omitempty"`
	// Joined lists one's own machines that connect to the server by themselves.
	Joined []JoinedMachine `json:"joined,omitempty"`
	// Bills is the export of its bill that the server fetches; nil: none, or the caller does not see all teams.
	Bills *BillExport `json:"bills,omitempty"`
}

// JoinedMachine is one's own machine that connects to the server by itself.
type JoinedMachine struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since,omitzero"` // start of the connection; zero: not connected
	Heard time.Time `json:"heard,omitzero"` // time of its last answer; zero: none yet
	From  string    `json:"from,omitempty"` // its address
}

// Finding is the result of one check of an engine.
type Finding struct {
	Name string `json:"name"` // the check: a machine and "disk", "clock", and so on
	OK   bool   `json:"ok"`
	Text string `json:"text"` // the result; on failure also the fix
}

// EngineTiming is the timing of an engine, in seconds of wall time.
type EngineTiming struct {
	Poll        float64 `json:"poll_s"`        // interval between polls
	Sweep       float64 `json:"sweep_s"`       // interval between sweeps of its inventory
	Detect      float64 `json:"detect_s"`      // how long a loss can go unnoticed
	Boot        float64 `json:"boot_s"`        // longest time from launch to a running program
	Start       float64 `json:"start_s"`       // expected from launch to a restored program
	Consistency float64 `json:"consistency_s"` // how long its list may lack a running machine
	GrantWait   float64 `json:"grant_wait_s"`  // longest time to grant available capacity
	Idle        float64 `json:"idle_s"`        // longest time that a machine waits for the next job; 0: none
}

// Undecided is a machine that an earlier incarnation of the log rented. The log was restored or copied since, so
// another server may own it.
type Undecided struct {
	Instance string `json:"instance"`
	Offer    string `json:"offer"`
	Job      string `json:"job,omitempty"` // job that runs on it; "": none known

	// Ended reports that the machine has ended; the next step of its job is still undecided.
	Ended    bool           `json:"ended,omitempty"`
	Since    time.Time      `json:"since,omitzero"` // start of billing; zero if it has ended
	Cost     *money.Amount  `json:"cost,omitempty"` // so far; nil if it has ended
	Currency money.Currency `json:"currency,omitempty"`
}

// Ownership decides whether machines of an earlier incarnation belong to this server (adopt) or to another
// (release).
type Ownership struct {
	Instance string `json:"instance,omitempty"` // "": all undecided machines
	Adopt    bool   `json:"adopt"`
}

// Verified is the result of a check of the ledger.
type Verified struct {
	OK       bool           `json:"ok"`
	Problem  string         `json:"problem,omitempty"`
	Events   uint64         `json:"events"`
	Postings int            `json:"postings"`
	Head     Hash           `json:"head"`
	Jobs     int            `json:"jobs"`
	Cost     money.Amount   `json:"cost"` // of all jobs and idle machines
	Idle     money.Amount   `json:"idle"` // of idle machines
	Currency money.Currency `json:"currency"`
}
