package agent

import (
	"testing"

	"scrimp/internal/wire/api"
)

// Output printed while the server's disk was full arrives once there is room, and before the end is
// reported: after that the server releases the machine and its disk.
func TestLog_ArrivesOnceServerHasRoom(t *testing.T) {
	t.Parallel()
	a := assign(t, "print", "TEST_LINES=3")
	r := newRig(t, a)
	r.server.order(func() { r.server.full = true })
	r.start()
	r.server.wait("output is turned away for more than a moment", func() bool { return r.server.turned > 3 })
	r.server.order(func() {
		for _, m := range r.server.applied {
			if m.Ended != nil {
				t.Error("the end is told before the output")
			}
		}
		r.server.full = false
	})
	r.server.waitFor("the end", func(m api.Message) bool { return m.Ended != nil })
	r.server.order(func() {
		if got := string(r.server.log); got != "line 0 \nline 1 x\nline 2 xx\n" {
			t.Errorf("the server has %q of the output", got)
		}
		r.server.orders.Off = true
	})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}
