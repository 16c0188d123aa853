package program

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is what a program used since the measurement before.
type Usage struct {
	CPU       float64 // cores
	Memory    int64   // bytes resident; memory that processes share counts for each
	Read      int64   // bytes from disks
	Written   int64   // bytes to disks
	Processes int
	Detail    *Detail // nil: there are too many processes to look at each, or the system cannot tell
}

// Meter measures a program: by its control group where it has one that counts, which costs the same however
// many processes there are, else by those of its group and all that descend from them. See NewMeter.
type Meter struct {
	group int
	cage  string // folder of the control group; "": none, or it does not count
	at    time.Time
	ticks int64
	io    map[int][2]int64
	last  caged
	each  detailing
}

// Meter measures the program from now on.
func (p *Program) Meter(now time.Time) *Meter {
	m := NewMeter(p.group, now)
	if c, ok := readCage(p.cage.path()); ok {
		m.cage, m.last = p.cage.path(), c
		m.each.measure(now, membersOf(m.cage))
	}
	return m
}

// NewMeter measures the program of this group from now on.
func NewMeter(group int, now time.Time) *Meter {
	m := &Meter{group: group, io: map[int][2]int64{}}
	m.Measure(now)
	return m
}

// Measure returns what was used since the last call. It is false where the system cannot tell.
func (m *Meter) Measure(now time.Time) (Usage, bool) {
	if m.cage != "" {
		return m.measureCage(now)
	}
	members := family(processes(), m.group, nil)
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

// caged is what a control group has used since it was made, and has now.
type caged struct {
	cpu           time.Duration
	memory        int64 // without what files have in it
	read, written int64
	processes     int
}

// readCage is false where the group does not count processors and memory.
func readCage(dir string) (c caged, ok bool) {
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

// numbers reads a file with a name and a number in each line.
func numbers(path string) (map[string]int64, error) {
	b, err := os.ReadFile(path)
	list := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		list[name], _ = strconv.ParseInt(value, 10, 64) // the kernel writes numbers
	}
	return list, err
}

func (m *Meter) measureCage(now time.Time) (Usage, bool) {
	c, ok := readCage(m.cage)
	if !ok || c.processes == 0 {
		return Usage{}, false
	}
	u := Usage{Memory: c.memory, Read: max(0, c.read-m.last.read), Written: max(0, c.written-m.last.written),
		Processes: c.processes}
	if span := now.Sub(m.at).Seconds(); span > 0 {
		u.CPU = max(0, c.cpu-m.last.cpu).Seconds() / span
	}
	m.at, m.last = now, c
	if c.processes <= mostDetailed {
		u.Detail = m.each.measure(now, membersOf(m.cage))
	}
	return u, true
}

// diskIO returns what a process has read from disks and written to them.
func diskIO(pid int) (read, written int64, ok bool) {
	c, ok := readIO(pid)
	return c.read, c.written, ok
}

// ioCounts are the counters of /proc/PID/io since the process began.
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
