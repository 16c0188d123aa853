package program

import (
	"os"
	"testing"
	"time"
)

// The main process is the one that starts the workers, even below a shell and a launcher.
func TestMainProcess_SkipsLaunchers(t *testing.T) {
	list := []process{{pid: 9, begun: 30, name: "pt_data_worker"}, {pid: 4, begun: 10, name: "sh"},
		{pid: 7, begun: 20, name: "python3"}, {pid: 5, begun: 10, name: "torchrun"}, {pid: 8, begun: 20, name: "python3"}}
	if pid := mainProcess(list); pid != 7 {
		t.Errorf("%d is taken", pid)
	}
	if pid := mainProcess(list[1:2]); pid != 4 {
		t.Errorf("of launchers alone %d is taken", pid)
	}
}

// Usage before the first measurement does not count, and too many processes are not measured one by one.
func TestDetail_CountsFromTheFirstMeasurement(t *testing.T) {
	own := process{pid: os.Getpid(), name: "test", own: 500, system: 200, faults: 3, threads: 4}
	var d detailing
	begin := time.Unix(1000, 0)
	if d.measure(begin, []process{own}) != nil {
		t.Error("the first measurement says something")
	}
	own.own, own.system, own.faults = 900, 300, 5
	got := d.measure(begin.Add(4*time.Second), []process{own})
	if got == nil || got.Main != 1 || got.System != 0.25 || got.Faults != 2 || got.Threads != 4 || got.Reads < 1 {
		t.Errorf("%+v", got)
	}
	if d.measure(begin.Add(5*time.Second), make([]process, maxDetailed+1)) != nil {
		t.Error("more processes than are looked at are measured")
	}
	if d.measure(begin.Add(6*time.Second), []process{own}) != nil {
		t.Error("after a gap the counters since the begin are taken for new ones")
	}
}
