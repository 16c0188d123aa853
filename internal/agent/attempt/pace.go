package attempt

import "time"

// Pace is how often an agent looks at things, and how long it waits for what may follow. Only tests have another than
// usualPace.
type Pace struct {
	Poll     time.Duration // between two looks at what the program prints and at its checkpoint folder
	Log      time.Duration // between two looks for output to ship
	Silence  time.Duration // between two looks at how long the server has been away
	Usage    time.Duration // between two measurements of the machine
	Also     time.Duration // by which an agent may hear later than its program of a signal that was sent to both
	Farewell time.Duration // for the last report to a server that has been away for too long
	HangUp   time.Duration // for the command of a session to end once nobody follows it any more
}

// UsualPace costs little: a look takes some microseconds.
var UsualPace = Pace{Poll: 250 * time.Millisecond, Log: 500 * time.Millisecond, Silence: time.Second,
	Usage: 5 * time.Second, Also: 2 * time.Second, Farewell: 5 * time.Second, HangUp: 2 * time.Second}
