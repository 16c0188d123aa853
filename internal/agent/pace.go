package agent

import "time"

// pace is how often an agent looks at things, and how long it waits for what may follow. Only tests have another than
// usualPace.
type pace struct {
	look     time.Duration // between two looks at what the program prints and at its checkpoint folder
	log      time.Duration // between two looks for output to ship
	silence  time.Duration // between two looks at how long the server has been away
	usage    time.Duration // between two measurements of the machine
	also     time.Duration // by which an agent may hear later than its program of a signal that was sent to both
	farewell time.Duration // for the last report to a server that has been away for too long
	hangUp   time.Duration // for the command of a session to end once nobody follows it any more
}

// usualPace costs little: a look takes some microseconds.
var usualPace = pace{look: 250 * time.Millisecond, log: 500 * time.Millisecond, silence: time.Second,
	usage: 5 * time.Second, also: 2 * time.Second, farewell: 5 * time.Second, hangUp: 2 * time.Second}
