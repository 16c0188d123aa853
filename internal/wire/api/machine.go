package api

import "time"

// Registration is a machine's description of itself, sent once with its bootstrap token. The private half of Key
// never leaves the machine. A repeated registration with the same key succeeds, because a response may be lost;
// another key never does.
type Registration struct {
	Instance string    `json:"instance"`
	Key      string    `json:"key"` // Ed25519, public, in base64
	Version  string    `json:"version"`
	Boot     time.Time `json:"boot"` // start of the agent
	CPUs     int       `json:"cpus"`
	Memory   int64     `json:"memory"`             // bytes; 0: unknown
	Root     bool      `json:"root,omitempty"`     // the agent runs as root
	Isolated bool      `json:"isolated,omitempty"` // programs run as a user of their own
	Address  string    `json:"address,omitempty"`  // address for other machines; "": unknown
}

// Identification is the proof of identity of a machine that starts without a secret.
type Identification struct {
	Engine    string `json:"engine"`
	Document  string `json:"document"`  // document of the provider about the machine, byte for byte
	Signature string `json:"signature"` // the provider's signature of the document
}

// Identified is the response to an Identification.
type Identified struct {
	Instance string `json:"instance"` // the provider's ID of the machine
	Token    string `json:"token"`    // one-time token for the registration
}

// Registered is the response to a registration.
type Registered struct {
	Wire  int    `json:"wire"`  // version that the server speaks
	Build string `json:"build"` // of the server
}

// Pull requests tasks. It is signed with the machine's key, and answered once there is something to do, or after
// PullWait.
type Pull struct {
	Running []string `json:"running,omitempty"` // attempts on the machine
	Version string   `json:"version"`
	Build   string   `json:"build"`
	// Clean reports that no task runs on the machine and that nothing of an earlier one is left: no process, folder
	// (work, checkpoints, outputs, log, unsent messages), secret or accelerator memory. The agent sets it only if it
	// has verified that.
	Clean bool `json:"clean,omitempty"`
}

// PullWait is how long a pull waits if there is nothing to do.
const PullWait = 20 * time.Second

// Pulled tells a machine what to do. Each response repeats the machine's tasks that it does not report as running,
// because a response may be lost.
type Pulled struct {
	Tasks []Assignment `json:"tasks,omitempty"`
	Off   bool         `json:"off,omitempty"` // finish what runs, take nothing more, switch off
	Wire  int          `json:"wire"`          // version that the server speaks; older agents get no tasks
	Build string       `json:"build"`         // of the server
}
