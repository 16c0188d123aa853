package api

import (
	"fmt"
	"testing"
)

// Ten thousand gangs have ten thousand ports, each the same for as long as the others do not want
// it, and the next one has none.
func TestNoTwoGangsMeetAtOnePort(t *testing.T) {
	taken := map[int]bool{}
	has := func(port int) bool { return taken[port] }
	for i := range masters {
		name := fmt.Sprintf("j%d.1", i)
		port := MasterPort(name, has)
		if port < firstMaster || port >= firstMaster+masters || taken[port] {
			t.Fatalf("gang %d meets at %d", i, port)
		}
		if again := MasterPort(name, has); again != port {
			t.Fatalf("gang %d meets at %d, and at %d", i, port, again)
		}
		taken[port] = true
	}
	if port := MasterPort("one-more.1", has); port != 0 {
		t.Errorf("the last gang meets at %d, where another does", port)
	}
	none := func(int) bool { return false }
	if MasterPort("j1.1", none) == MasterPort("j1.2", none) {
		t.Error("an attempt meets where the one before did")
	}
}
