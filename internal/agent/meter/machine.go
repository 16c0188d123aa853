// Package meter measures a machine: processors, memory, disks and network from the kernel's
// counters in /proc, and GPUs with nvidia-smi.
package meter

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/wire/telemetry"
)

// Machine measures the machine on which it runs. The zero value reads /proc and /sys.
type Machine struct {
	Root string // parent of proc and sys; empty means /

	at    time.Time
	last  counts
	cores []cpuTime // counters of the cores at the last call of Cores
	disks map[string]bool
}

// cpuTime holds the kernel's counters of a processor, in ticks since the boot.
type cpuTime struct{ all, idle, iowait int64 }

// counts holds counters, and the present use of memory.
type counts struct {
	cpu                    cpuTime
	cores                  []cpuTime
	read, written, in, out int64
	used, cache            int64
	hasCPU, hasMemory      bool
	hasDisks, hasNet       bool
	running                int64 // runnable threads, including the one that reads this
}

const sector = 512 // bytes; the unit of /proc/diskstats for every disk

// Head returns the constant properties of the machine, without GPUs.
func (m *Machine) Head() telemetry.Head {
	c := m.read()
	h := telemetry.Head{Cores: len(c.cores)}
	h.Memory = m.memory()["MemTotal"]
	return h
}

// Measure adds the use of the machine since the last call, and returns the length of that time. The
// first call returns 0 and adds nothing.
func (m *Machine) Measure(now time.Time, to *telemetry.Bucket) time.Duration {
	c := m.read()
	span := now.Sub(m.at)
	if m.at.IsZero() || span <= 0 {
		m.at, m.last, m.cores = now, c, c.cores
		return 0
	}
	if d := c.cpu.since(m.last.cpu); c.hasCPU && d.all > 0 {
		share := func(n int64) float64 { return min(1, float64(max(0, n))/float64(d.all)) }
		to.Set(telemetry.CPU, share(d.all-d.idle-d.iowait))
		to.Set(telemetry.IOWait, share(d.iowait))
		to.Set(telemetry.Idle, share(d.idle))
	}
	if c.hasMemory {
		to.Set(telemetry.Memory, float64(c.used))
		to.Set(telemetry.PageCache, float64(c.cache))
	}
	if c.running > 0 {
		to.Set(telemetry.RunQueue, float64(c.running-1)) // without the thread that reads it
	}
	rate := func(metric telemetry.Metric, known bool, now, before int64) {
		if known {
			to.Set(metric, float64(max(0, now-before))/span.Seconds())
		}
	}
	rate(telemetry.DiskRead, c.hasDisks, c.read, m.last.read)
	rate(telemetry.DiskWrite, c.hasDisks, c.written, m.last.written)
	rate(telemetry.NetReceive, c.hasNet, c.in, m.last.in)
	rate(telemetry.NetTransmit, c.hasNet, c.out, m.last.out)
	m.at, m.last = now, c
	return span
}

// Cores adds the use of each core since the last call.
func (m *Machine) Cores(to *telemetry.Bucket) {
	now := m.last.cores
	if len(now) == 0 || len(now) != len(m.cores) { // a core was switched on or off
		m.cores = now
		return
	}
	for n := range min(len(now), telemetry.MaxCores) {
		v := telemetry.Unknown
		if d := now[n].since(m.cores[n]); d.all > 0 {
			v = telemetry.Exactly(max(0, float64(d.all-d.idle-d.iowait)/float64(d.all)))
		}
		to.V[telemetry.Core] = append(to.V[telemetry.Core], v)
	}
	m.cores = now
}

func (c cpuTime) since(b cpuTime) cpuTime {
	return cpuTime{c.all - b.all, c.idle - b.idle, c.iowait - b.iowait}
}

func (m *Machine) path(name string) string { return filepath.Clean(m.Root + "/" + name) }

// read reads the kernel's counters. Those that are missing stay unknown.
func (m *Machine) read() (c counts) {
	for _, f := range m.table("proc/stat") {
		if len(f) == 2 && f[0] == "procs_running" {
			c.running = number(f[1])
		}
		if len(f) < 6 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		t := cpuTime{idle: number(f[4]), iowait: number(f[5])}
		for n := 1; n < min(len(f), 9); n++ { // guest time is part of user time
			t.all += number(f[n])
		}
		if f[0] == "cpu" {
			c.cpu, c.hasCPU = t, true
		} else {
			c.cores = append(c.cores, t)
		}
	}
	info := m.memory()
	if all, free := info["MemTotal"], info["MemAvailable"]; all > 0 && free > 0 {
		c.used, c.cache, c.hasMemory = all-free, info["Cached"]+info["Buffers"], true
	}
	for _, f := range m.table("proc/diskstats") {
		if len(f) > 9 && m.isDisk(f[2]) {
			c.read += number(f[5]) * sector
			c.written += number(f[9]) * sector
			c.hasDisks = true
		}
	}
	c.network(m.path("proc/net/dev"))
	return c
}

// network adds up the traffic of external interfaces.
func (c *counts) network(path string) {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		name, counted, _ := strings.Cut(line, ":") // header lines have no colon
		if f := strings.Fields(counted); len(f) > 8 && leadsOut(strings.TrimSpace(name)) {
			c.in, c.out, c.hasNet = c.in+number(f[0]), c.out+number(f[8]), true
		}
	}
}

// leadsOut reports whether an interface leads out of the machine. Traffic on a bridge or to a
// container also counts on another interface.
func leadsOut(name string) bool {
	for _, inner := range []string{"lo", "veth", "docker", "br-", "virbr", "cni", "flannel", "cali", "ifb", "dummy", "tun",
		"tap"} {
		if strings.HasPrefix(name, inner) {
			return false
		}
	}
	return true
}

// isDisk reports whether a device is a whole disk, and not a partition, a composed device or a memory device.
func (m *Machine) isDisk(name string) bool {
	if is, known := m.disks[name]; known {
		return is
	}
	_, err := os.Stat(filepath.Join(m.path("sys/block"), strings.ReplaceAll(name, "/", "!")))
	is := err == nil
	for _, made := range []string{"loop", "ram", "dm-", "md", "zram", "sr", "fd"} {
		is = is && !strings.HasPrefix(name, made)
	}
	if m.disks == nil {
		m.disks = map[string]bool{}
	}
	m.disks[name] = is
	return is
}

// memory returns /proc/meminfo in bytes.
func (m *Machine) memory() map[string]int64 {
	info := map[string]int64{}
	for _, f := range m.table("proc/meminfo") {
		if len(f) > 1 {
			info[strings.TrimSuffix(f[0], ":")] = number(f[1]) << 10
		}
	}
	return info
}

// table returns a file's lines as columns; an unreadable file has no lines.
func (m *Machine) table(name string) (rows [][]string) {
	b, _ := os.ReadFile(m.path(name))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 {
			rows = append(rows, f)
		}
	}
	return rows
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // the kernel writes numbers
	return n
}
