package receipt

import "strings"

// EndText describes how an attempt or a machine ended. The provider reports a machine that ended without a message
// from its agent as stopped.
func EndText(end string) string {
	switch end {
	case "stopped":
		return "agent lost"
	case "silent":
		return "agent silent"
	}
	return strings.ReplaceAll(end, "_", " ")
}

// WhyNext explains why another attempt followed. before is the name of the attempt that ended, end is how it ended.
func WhyNext(before, end string) string {
	switch end {
	case "stopped":
		return "the agent of " + before + " was lost: its machine ended without a message"
	case "silent":
		return "the agent of " + before + " was not heard any more"
	case "interrupted":
		return "the machine of " + before + " was interrupted"
	case "drained", "moved":
		return before + " was asked to save and end"
	case "preempted":
		return "a critical job preempted " + before
	case "failed":
		return "the program of " + before + " failed"
	case "setup":
		return "the set-up of " + before + " failed"
	case "gang_wait":
		return "not all machines of " + before + " came"
	}
	return before + " ended: " + EndText(end)
}
