package receipt

import "strings"

// EndText is how an attempt or a machine ended, for people. A machine that ended by itself, with
// nothing said by its agent, is told by its provider as stopped.
func EndText(end string) string {
	switch end {
	case "stopped":
		return "agent lost"
	case "silent":
		return "agent silent"
	}
	return strings.ReplaceAll(end, "_", " ")
}

// WhyNext says why another attempt followed one that ended so; before is that one's name.
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
	case "failed":
		return "the program of " + before + " failed"
	case "setup":
		return "the set-up of " + before + " failed"
	case "gang_wait":
		return "not all machines of " + before + " came"
	}
	return before + " ended: " + EndText(end)
}
