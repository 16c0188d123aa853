package receipt

import "testing"

// If a machine ended without a message, nobody stopped its attempt.
func TestEndText_IsPlain(t *testing.T) {
	t.Parallel()
	for end, want := range map[string][2]string{
		"stopped":   {"agent lost", "the agent of attempt 1 was lost: its machine ended without a message"},
		"silent":    {"agent silent", "the agent of attempt 1 was not heard any more"},
		"gang_wait": {"gang wait", "not all machines of attempt 1 came"},
		"completed": {"completed", "attempt 1 ended: completed"},
		"failed":    {"failed", "the program of attempt 1 failed"},
	} {
		if got := [2]string{EndText(end), WhyNext("attempt 1", end)}; got != want {
			t.Errorf("%s is %q, want %q", end, got, want)
		}
	}
}
