package api

import (
	"fmt"
	"testing"
)

// Ten thousand gangs have ten thousand ports, each the same as long as no other gang has it, and the next gang has
// none.
func TestMasterPort_IsUniquePerGang(t *testing.T) {
	t.Parallel()
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

// ParseOutputs inverts OutputsName, even if one job has the name of another job's outputs.
func TestParseOutputs_InvertsOutputsName(t *testing.T) {
	t.Parallel()
	for node := range 300 {
		if n, ok := ParseOutputs("job-1", OutputsName("job-1", node)); n != node || !ok {
			t.Fatalf("node %d is read back as %d %v", node, n, ok)
		}
	}
	for _, bad := range []string{"", "job", "job-1-", "job-1-0", "job-1-01", "job-1--1", "job-1-1-1", "job-12", "1"} {
		if n, ok := ParseOutputs("job-1", bad); ok {
			t.Errorf("%q is node %d", bad, n)
		}
	}
}

// ParseRank inverts Rank and accepts nothing else.
func TestParseRank_InvertsRank(t *testing.T) {
	t.Parallel()
	for node := range 300 {
		if attempt, n, ok := ParseRank(Rank("job-1.2", node)); attempt != "job-1.2" || n != node || !ok {
			t.Fatalf("rank %d is read back as %s %d %v", node, attempt, n, ok)
		}
	}
	for _, bad := range []string{"", "a/", "a/0", "a/01", "a/-1", "a/+1", "a/1/2", "/1", "a/x", "a/ 1"} {
		if attempt, n, ok := ParseRank(bad); ok {
			t.Errorf("%q is rank %d of %s", bad, n, attempt)
		}
	}
	if Rank("job-1.2", 0) != "job-1.2" {
		t.Error("rank 0 goes by the attempt's name")
	}
}
