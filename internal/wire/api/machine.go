package api

import "time"

// Registration is what a machine says of itself, once, with its bootstrap token. The
// private half of Key never leaves the machine. The same key is answered again, since an
// answer may be lost; another one never.
type Registration struct {
	Instance string    `json:"instance"`
	Key      string    `json:"key"` // Ed25519, public, in base64
	Version  string    `json:"version"`
	Boot     time.Time `json:"boot"` // when the agent began
	CPUs     int       `json:"cpus"`
	Memory   int64     `json:"memory"`             // bytes; 0: unknown
	Root     bool      `json:"root,omitempty"`     // the agent is root
	Isolated bool      `json:"isolated,omitempty"` // programs run as a user of their own
	Address  string    `json:"address,omitempty"`  // at which other machines reach it; "": it does not know
}

// Identification is what a machine shows that begins without a secret.
type Identification struct {
	Engine    string `json:"engine"`
	Document  string `json:"document"`  // that the provider wrote about the machine, byte for byte
	Signature string `json:"signature"` // of it, as the provider gives it
}

// Identified is the answer to it.
type Identified struct {
	Instance string `json:"instance"` // the provider's id of the machine
	Token    string `json:"token"`    // by which it registers, once
}

// Registered is the answer to a registration.
type Registered struct {
	Wire  int    `json:"wire"`  // that the server speaks
	Build string `json:"build"` // of the server
}

// Pull asks for tasks. It is signed with the machine's key, and answered when there is
// something to do, or after PullWait.
type Pull struct {
	Running []string `json:"running,omitempty"` // attempts that the machine has
	Version string   `json:"version"`
	Build   string   `json:"build"`
	// Clean says that no task runs on the machine, and that nothing of an earlier one is left:
	// no process, no folder (work, checkpoints, outputs, log, what it had to say), no secret, no
	// memory of an accelerator. It is said where that was shown, and not else.
	Clean bool `json:"clean,omitempty"`
}

// PullWait is how long a pull is kept waiting where there is nothing to do.
const PullWait = 20 * time.Second

// Pulled says what a machine is to do. A task that it was given and does not name as
// running is in every answer, so that an answer may be lost.
type Pulled struct {
	Tasks []Assignment `json:"tasks,omitempty"`
	Off   bool         `json:"off,omitempty"` // end what runs in its own time, take nothing more, switch off
	Wire  int          `json:"wire"`          // that the server speaks; no task for who speaks an older one
	Build string       `json:"build"`         // of the server
}
