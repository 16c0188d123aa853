package program

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a program used since the previous measurement.
type Usage struct {
	CPU       float64 // cores
	Memory    int64   // bytes resident; shared memory counts once for each process
	Read      int64   // bytes from disks
	Written   int64   // bytes to disks
	Processes int
	Detail    *Detail // nil: too many processes, or the system does not report it
}

// Meter measures a program. It reads the program's control group if that counts usage, which costs
// the same for any number of processes; otherwise it adds up the processes of its group and their
// descendants. See NewMeter.
type Meter struct {
	group  int
	cgroup string // folder of the control group; empty: none, or it does not count
	at     time.Time
	ticks  int64
	io     map[int][2]int64
	last   cgroupUsage
	each   detailing
}

// Meter returns a Meter that measures the program from now on.
func (p *Program) Meter(now time.Time) *Meter {
	m := NewMeter(p.group, now)
	if c, ok := readCgroup(p.cgroup.path()); ok {
		m.cgroup, m.last = p.cgroup.path(), c
		m.each.measure(now, membersOf(m.cgroup))
	}
	return m
}

// NewMeter returns a Meter that measures the processes of group from now on.
func NewMeter(group int, now time.Time) *Meter {
	m := &Meter{group: group, io: map[int][2]int64{}}
	m.Measure(now)
	return m
}

// Measure returns the usage since the last call. ok is false if the system does not report it.
func (m *Meter) Measure(now time.Time) (Usage, bool) {
	if m.cgroup != "" {
		return m.measureCgroup(now)
	}
	members := allMembers(processes(), m.group, nil)
	if len(members) == 0 {
		return Usage{}, false
	}
	u := Usage{Processes: len(members)}
	var ticks int64
	seen := make(map[int][2]int64, len(members))
	for _, p := range members {
		ticks += p.ticks
		u.Memory += p.rss
		read, written, ok := diskIO(p.pid)
		if !ok {
			continue
		}
		before := m.io[p.pid]
		u.Read += max(0, read-before[0])
		u.Written += max(0, written-before[1])
		seen[p.pid] = [2]int64{read, written}
	}
	if span := now.Sub(m.at).Seconds(); !m.at.IsZero() && span > 0 {
		u.CPU = float64(max(0, ticks-m.ticks)) / ticksPerSecond / span
	}
	m.at, m.ticks, m.io = now, ticks, seen
	u.Detail = m.each.measure(now, members)
	return u, true
}

// cgroupUsage holds the totals of a control group since it was made, and its present memory and processes.
type cgroupUsage struct {
	cpu           time.Duration
	memory        int64 // without the page cache
	read, written int64
	processes     int
}

// readCgroup returns false if the group does not count processor time and memory.
func readCgroup(dir string) (c cgroupUsage, ok bool) {
	if dir == "" {
		return c, false
	}
	stat, err := numbers(filepath.Join(dir, "cpu.stat"))
	micros, counted := stat["usage_usec"]
	current, wrong := os.ReadFile(filepath.Join(dir, "memory.current"))
	memory, odd := strconv.ParseInt(strings.TrimSpace(string(current)), 10, 64)
	if err != nil || !counted || wrong != nil || odd != nil {
		return c, false
	}
	files, _ := numbers(filepath.Join(dir, "memory.stat"))
	c.cpu, c.memory = time.Duration(micros)*time.Microsecond, max(0, memory-files["file"])
	disks, _ := os.ReadFile(filepath.Join(dir, "io.stat"))
	for _, f := range strings.Fields(string(disks)) {
		name, value, _ := strings.Cut(f, "=")
		n, _ := strconv.ParseInt(value, 10, 64) // the kernel writes numbers
		switch name {
		case "rbytes":
			c.read += n
		case "wbytes":
			c.written += n
		}
	}
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	c.processes = strings.Count(string(members), "\n")
	return c, err == nil
}

// numbers reads a file with a name and a number on each line.
func numbers(path string) (map[string]int64, error) {
	b, err := os.ReadFile(path)
	list := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		list[name], _ = strconv.ParseInt(value, 10, 64) // the kernel writes numbers
	}
	return list, err
}

func (m *Meter) measureCgroup(now time.Time) (Usage, bool) {
	c, ok := readCgroup(m.cgroup)
	if !ok || c.processes == 0 {
		return Usage{}, false
	}
	u := Usage{Memory: c.memory, Read: max(0, c.read-m.last.read), Written: max(0, c.written-m.last.written),
		Processes: c.processes}
	if span := now.Sub(m.at).Seconds(); span > 0 {
		u.CPU = max(0, c.cpu-m.last.cpu).Seconds() / span
	}
	m.at, m.last = now, c
	if c.processes <= maxDetailed {
		u.Detail = m.each.measure(now, membersOf(m.cgroup))
	}
	return u, true
}

// diskIO returns the bytes that a process has read from and written to disks.
func diskIO(pid int) (read, written int64, ok bool) {
	c, ok := readIO(pid)
	return c.read, c.written, ok
}

// ioCounts holds the counters of /proc/PID/io since the process started.
type ioCounts struct{ read, written, reads, writes, readChars, writeChars int64 }

func readIO(pid int) (c ioCounts, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/io")
	if err != nil {
		return c, false
	}
	into := map[string]*int64{"read_bytes": &c.read, "write_bytes": &c.written, "syscr": &c.reads, "syscw": &c.writes,
		"rchar": &c.readChars, "wchar": &c.writeChars}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if to := into[name]; to != nil {
			*to, _ = strconv.ParseInt(value, 10, 64) // the kernel writes numbers
		}
	}
	return c, true
}
