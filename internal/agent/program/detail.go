package program

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDetailed is the largest number of processes that are measured one by one. Each takes two small files.
const maxDetailed = 256

// Detail describes the usage of a program since the previous measurement.
type Detail struct {
	System float64 // cores that the kernel used for it
	Main   float64 // cores that its main process used, without its children
	// Blocked is the share of the time in which the first thread of the main process waited for
	// something other than a processor; NaN if the system does not report it.
	Blocked float64
	// Threads is the present number of threads.
	Threads int
	// Faults counts major page faults. Reads, Writes and their bytes count system calls, whether or
	// not they needed a disk.
	Faults, Reads, Writes, ReadBytes, WriteBytes int64
}

// detailing holds the counters of the last measurement.
type detailing struct {
	at             time.Time
	system, faults int64
	main           map[int]int64 // ticks by process
	io             map[int]ioCounts
	scheduled      map[int]time.Duration // time in which the first thread of a main process ran or was ready to run
}

// measure returns the usage of the members since the last call, or nil on the first call and with
// too many members.
func (d *detailing) measure(now time.Time, members []process) *Detail {
	if len(members) == 0 || len(members) > maxDetailed {
		*d = detailing{}
		return nil
	}
	span := now.Sub(d.at).Seconds()
	first := d.at.IsZero() || span <= 0
	next := detailing{at: now, main: map[int]int64{}, io: map[int]ioCounts{}}
	var out Detail
	for _, p := range members {
		next.system, next.faults = next.system+p.system, next.faults+p.faults
		next.main[p.pid] = p.own
		out.Threads += p.threads
		c, ok := readIO(p.pid)
		if !ok {
			continue
		}
		before := d.io[p.pid]
		out.Reads += max(0, c.reads-before.reads)
		out.Writes += max(0, c.writes-before.writes)
		out.ReadBytes += max(0, c.readChars-before.readChars)
		out.WriteBytes += max(0, c.writeChars-before.writeChars)
		next.io[p.pid] = c
	}
	pid := mainProcess(members)
	if ready, ok := scheduled(pid); ok {
		next.scheduled = map[int]time.Duration{pid: ready}
	}
	was := *d
	*d = next
	if first {
		return nil
	}
	out.System = float64(max(0, next.system-was.system)) / ticksPerSecond / span
	out.Main = float64(max(0, next.main[pid]-was.main[pid])) / ticksPerSecond / span
	out.Blocked = math.NaN()
	if before, known := was.scheduled[pid]; known && next.scheduled != nil {
		out.Blocked = 1 - min(1, max(0, (next.scheduled[pid]-before).Seconds()/span))
	}
	out.Faults = max(0, next.faults-was.faults)
	return &out
}

// scheduled returns how long the first thread of a process has run or waited for a processor.
func scheduled(pid int) (time.Duration, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
	f := strings.Fields(string(b))
	if err != nil || len(f) < 2 {
		return 0, false
	}
	ran, err := strconv.ParseInt(f[0], 10, 64)
	waited, wrong := strconv.ParseInt(f[1], 10, 64)
	return time.Duration(ran + waited), err == nil && wrong == nil
}

// launchers lists programs that start other programs and wait for them.
var launchers = []string{"sh", "bash", "dash", "zsh", "env", "timeout", "nice", "sudo", "su", "time", "stdbuf",
	"xvfb-run", "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "orterun", "srun", "make", "scrimp"}

// mainProcess returns the oldest process that is not a launcher: the one that starts the others,
// such as data loader workers. If all are launchers it returns the oldest.
func mainProcess(members []process) int {
	oldest := slices.MinFunc(members, func(a, b process) int {
		of := func(p process) int64 {
			if slices.Contains(launchers, p.name) {
				return 1
			}
			return 0
		}
		if by := of(a) - of(b); by != 0 {
			return int(by)
		}
		if a.begun != b.begun {
			return int(a.begun - b.begun)
		}
		return a.pid - b.pid
	})
	return oldest.pid
}

// membersOf returns the processes of a control group.
func membersOf(cgroup string) (list []process) {
	b, _ := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	for line := range strings.Lines(string(b)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || len(list) > maxDetailed {
			continue
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(stat); ok && !p.zombie {
			list = append(list, p)
		}
	}
	return list
}
