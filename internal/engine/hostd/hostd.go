package hostd

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/durable"
)

// keepEnded is how long an ended machine stays known, so that its key starts no other one.
const keepEnded = 48 * time.Hour

// maxLine bounds the bytes of an input line.
const maxLine = 1 << 20

// Options configure a host daemon.
type Options struct {
	Dir     string   // absolute folder of its machines
	Agent   []string // command of a machine's first process
	Address string   // address at which other machines reach this one; empty: the agent finds it
	Server  string   // URL at which local agents reach the server; empty: set by each launch
	CA      string   // PEM file of certificates trusted for that in addition to the system's
	// Apart reports whether programs can have their own users below a folder, and if not, why.
	Apart func(dir string) (ok bool, why string)
	Log   *slog.Logger

	Processes Processes // of machines; nil: this computer's
}

// Processes starts, finds and ends the processes of machines.
type Processes interface {
	// Start starts a machine's first process in its folder.
	Start(id, dir string, env map[string]string) (Process, error)
	// First returns the first process of a machine that started without being recorded; zero if there is none.
	First(id string) Process
	Alive(p Process) bool
	Kill(id string, first Process) bool // reports whether none is left
	Boot() (id string, at time.Time)    // the computer's current boot
}

// Process identifies a process for ever.
type Process struct {
	PID   int    `json:"pid,omitempty"`   // 0: none
	Start string `json:"start,omitempty"` // start time in the kernel's form, which distinguishes reused PIDs
}

// machine is a machine as recorded in its folder.
type machine struct {
	engine.Instance
	Begun   time.Time `json:"begun"`         // by this computer's clock
	Over    time.Time `json:"over,omitzero"` // by this computer's clock
	Boot    string    `json:"boot"`          // boot of the computer at the machine's start
	Process           // its first process; zero: not recorded
}

func (m *machine) runs() bool { return m.State == engine.Running }

// host is the daemon's state of the computer.
type host struct {
	Options
	lock *os.File // of the folder
	mu   sync.Mutex
	list []*machine
}

// Serve answers requests until in ends or ctx is done.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	h, err := open(o)
	if err != nil {
		return err
	}
	defer func() { _ = h.lock.Close() }()
	if _, err := fmt.Fprintf(out, "\n%s\n", Greeting); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var writing sync.Mutex
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx) // nobody waits for an answer after the end of the input
	defer cancel()
	for ctx.Err() == nil && lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a line is not a request: %w", err)
		}
		asked.Go(func() { // a slow request must not delay others
			a := h.answer(ctx, &r)
			a.ID = r.ID
			text, err := json.Marshal(a)
			if err != nil {
				return
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = out.Write(append(text, '\n')) // most likely the caller is gone, and then the input ends, too
		})
	}
	return lines.Err()
}

// open opens the folder and reads its machines.
func open(o Options) (*host, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("folder %q: write an absolute path", o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o711); err != nil { //nolint:gosec // users of tasks pass through it
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Processes == nil {
		o.Processes = &trees{agent: o.Agent, address: o.Address, server: o.Server, ca: o.CA}
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, full(err)
	}
	h := &host{Options: o, lock: lock}
	if err := h.alone(func() error { return nil }); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return h, nil
}

// alone calls do with the current state and exclusive access to the folder. Several daemons may serve the same folder
// at once: one behind a broken connection may receive a launch long after its successor.
func (h *host) alone(do func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", h.lock.Name(), err)
	}
	defer func() { _ = syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN) }()
	if err := h.read(); err != nil {
		return err
	}
	return do()
}

// read reads the records of the folder. Records of ended machines do not change. The caller holds mu.
func (h *host) read() error {
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return err
	}
	known := map[string]*machine{}
	for _, m := range h.list {
		if m.State == engine.Ended {
			known[m.ID] = m
		}
	}
	h.list = nil
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m := known[e.Name()]
		if m == nil {
			m, err = readMachine(filepath.Join(h.Dir, e.Name()))
		}
		if errors.Is(err, os.ErrNotExist) {
			continue // not a machine's
		}
		if err != nil {
			return err
		}
		h.list = append(h.list, m)
	}
	return nil
}

func readMachine(dir string) (*machine, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return nil, err
	}
	m := &machine{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("read the machine %s: %w", dir, err)
	}
	return m, nil
}

// full turns a full disk into a refusal that says what to do: another machine may have room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: its disk is full: make room, or set another folder, with: {folder: /scratch/scrimp} (%v)",
			engine.ErrNoCapacity, err) //nolint:errorlint // callers only need the kind
	}
	return err
}

const lockName = "lock"

// recordName is the file with a machine's record in its folder.
const recordName = "machine.json"

func (h *host) answer(ctx context.Context, r *Request) (a Answer) {
	var err error
	switch r.Do {
	case "launch":
		var i engine.Instance
		if i, err = h.launch(r.Launch); err == nil {
			a.Instances = []engine.Instance{i}
		}
	case "end":
		err = h.end(r.Instance)
	case "list":
		a.Instances, err = h.look()
	case "ping": // the answer itself is the content
	case "facts":
		a.Facts = h.facts(ctx, cmp.Or(h.Server, r.Server))
	default:
		err = fmt.Errorf("%w: %q is not known here", engine.ErrRequest, r.Do)
	}
	if err != nil {
		a.Problem = err.Error()
		for name, kind := range kinds {
			if errors.Is(err, kind) {
				a.Kind = name
			}
		}
	}
	return a
}

// launch starts a machine, or returns the one that the key has started.
func (h *host) launch(l *Launch) (i engine.Instance, err error) {
	if l == nil || l.Key == "" || l.Name == "" || l.Name != filepath.Base(l.Name) {
		return i, fmt.Errorf("%w: a launch needs a key and a name", engine.ErrRequest)
	}
	err = h.alone(func() error {
		for _, m := range h.list {
			if h.see(m); m.Key == l.Key {
				i = m.Instance
				return nil
			}
		}
		if n := slices.IndexFunc(h.list, (*machine).runs); n >= 0 {
			return fmt.Errorf("machine %s runs there: %w", h.list[n].ID, engine.ErrNoCapacity)
		}
		i, err = h.begin(l)
		return err
	})
	return i, full(err)
}

// begin starts a machine. The caller holds mu.
func (h *host) begin(l *Launch) (engine.Instance, error) {
	boot, _ := h.Processes.Boot()
	m := &machine{Begun: time.Now().UTC(), Boot: boot, Instance: engine.Instance{
		ID: l.Name + "-" + random(), Key: l.Key, Offer: l.Offer, Rate: l.Rate, State: engine.Running, Launched: l.At.UTC(),
		Tags: l.Tags}}
	// The record is written before the start: a crash here leaves a machine without a process, which counts as ended,
	// and no process without a machine.
	if err := h.write(m); err != nil {
		return engine.Instance{}, errors.Join(err, os.RemoveAll(h.folder(m)))
	}
	var err error
	if m.Process, err = h.Processes.Start(m.ID, h.folder(m), l.Env); err != nil {
		return engine.Instance{}, errors.Join(err, os.RemoveAll(h.folder(m)))
	}
	h.list = append(h.list, m)
	if err := h.write(m); err != nil { // the next daemon looks for its process
		h.Log.Error("cannot record a started machine", "instance", m.ID, "error", err)
	}
	return m.Instance, nil
}

func random() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (h *host) folder(m *machine) string { return filepath.Join(h.Dir, m.ID) }

// write makes a machine's record durable.
func (h *host) write(m *machine) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	dir := h.folder(m)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, recordName), text)
}

// look returns the current state of all machines.
func (h *host) look() (list []engine.Instance, err error) {
	err = h.alone(func() error {
		oldest := time.Now().Add(-keepEnded)
		for _, m := range h.list {
			h.see(m)
			if m.State == engine.Ended && m.Over.Before(oldest) && os.RemoveAll(h.folder(m)) == nil {
				continue
			}
			list = append(list, m.Instance)
		}
		return nil
	})
	return list, err
}

// see ends a machine whose first process is gone. The caller holds mu.
func (h *host) see(m *machine) {
	if m.State != engine.Running {
		return
	}
	if m.PID == 0 { // its starter died before recording it
		m.Process = h.Processes.First(m.ID)
	}
	if h.Processes.Alive(m.Process) {
		return
	}
	cause := engine.Stopped
	over := endedAt(h.folder(m))
	if boot, at := h.Processes.Boot(); m.Boot != boot { // it ended with the computer
		cause, over = engine.Interrupted, at
	}
	_ = h.over(m, cause, over) // the next look tries again
}

// end terminates a machine.
func (h *host) end(id string) error {
	return h.alone(func() error {
		n := slices.IndexFunc(h.list, func(m *machine) bool { return m.ID == id })
		if n < 0 || h.list[n].State == engine.Ended {
			return fmt.Errorf("instance %q: %w", id, engine.ErrNotFound)
		}
		return h.over(h.list[n], engine.Terminated, time.Now())
	})
}

// over ends a machine and its remaining processes. The caller holds mu.
func (h *host) over(m *machine, cause engine.Cause, at time.Time) error {
	if !h.Processes.Kill(m.ID, m.Process) {
		return fmt.Errorf("processes of machine %s would not die", m.ID)
	}
	if now := time.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	end := *m
	end.State, end.Cause, end.Over = engine.Ended, cause, at.UTC()
	end.Ended = m.Launched.Add(max(0, at.Sub(m.Begun))) // durations by this clock, times by the server's
	h.wipe(m)
	if err := h.write(&end); err != nil { // report an end only after it is recorded
		h.Log.Error("cannot record an end; retrying", "instance", m.ID, "error", err)
		return err
	}
	*m = end
	return nil
}

// wipe removes a machine's files. The output of its first process stays for a while.
func (h *host) wipe(m *machine) {
	entries, _ := os.ReadDir(h.folder(m))
	for _, e := range entries {
		if e.Name() == recordName || e.Name() == consoleName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(h.folder(m), e.Name())); err != nil {
			h.Log.Error("cannot remove the files of a machine", "instance", m.ID, "error", err)
		}
	}
}
