package disk

import "testing"

// What others want leaves the log its reserve, and where nobody knows the room nothing is refused.
func TestTheLogKeepsItsReserve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, wants int64
		known, full bool
	}{
		{LogReserve, 0, true, false}, {LogReserve - 1, 0, true, true}, {LogReserve + 10, 10, true, false},
		{LogReserve + 10, 11, true, true}, {LogReserve, -1, true, false}, {0, 1, false, false},
	} {
		room := Room(func() (int64, bool) { return c.free, c.known })
		if free, full := room.Full(c.wants); full != c.full || free != c.free {
			t.Errorf("%d free, %d wanted: %d, full %v", c.free, c.wants, free, full)
		}
	}
	if free, ok := Of(t.TempDir())(); !ok || free <= 0 {
		t.Errorf("a folder that is there has %d bytes left, known: %v", free, ok)
	}
}
