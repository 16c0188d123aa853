package attempt

import "time"

// Pace holds the agent's poll intervals and timeouts. Only tests use values other than UsualPace.
type Pace struct {
	Poll     time.Duration // between polls of the program's output and checkpoint folder
	Log      time.Duration // between polls for output to ship
	Silence  time.Duration // between checks of how long the server has been unreachable
	Usage    time.Duration // between two measurements of the machine
	Also     time.Duration // how much later than its program an agent may receive a signal that was sent to both
	Farewell time.Duration // for the last report to a server that was unreachable for too long
	HangUp   time.Duration // how long the command of a session may run once nobody follows it
}

// UsualPace is the pace of a real agent. A poll takes some microseconds.
var UsualPace = Pace{Poll: 250 * time.Millisecond, Log: 500 * time.Millisecond, Silence: time.Second,
	Usage: 5 * time.Second, Also: 2 * time.Second, Farewell: 5 * time.Second, HangUp: 2 * time.Second}
