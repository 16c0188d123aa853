package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The jobs whose logs are measured with the real program.
const (
	steady      = "steady"      // one attempt, on a machine that stays
	interrupted = "interrupted" // the market interrupts each machine after 40 to 60 minutes
	realTime    = "real-time"   // a steady job on a market in real time
)

// fast is the number of market seconds per wall second for the first two.
const fast = 720

// Limits of the log: 20 KB per attempt, and 1 KB per running hour (1 KB is 1000 bytes).
const (
	perAttempt = 20.0
	perHour    = 1.0
)

// Life is a job's history and the size of its log.
type Life struct {
	Attempts int
	Hours    float64 // rented, in market time
	Log      LogSize
}

// Allowed returns the limit of its log, in KB.
func (l Life) Allowed() float64 { return perAttempt*float64(l.Attempts) + perHour*l.Hours }

// JobLog runs the jobs at the same time, each in its own data folder.
type JobLog struct {
	Hours float64       // of work of the fast jobs, in market time
	Watch time.Duration // how long the real-time job is watched
	Note  func(string)
}

// Run returns the figures of the three jobs.
func (l JobLog) Run(ctx context.Context, t *Tree) (map[string]float64, error) {
	exe, err := t.program(ctx)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	var errs [3]error
	var lives [2]Life
	var rate float64
	for i, kind := range []string{steady, interrupted} {
		all.Go(func() { lives[i], errs[i] = live(ctx, exe, t.temp, kind, l.Hours) })
	}
	all.Go(func() { rate, errs[2] = watch(ctx, exe, t.temp, l.Watch) })
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	found := map[string]float64{"real-time": rate}
	for i, kind := range []string{steady, interrupted} {
		life := lives[i]
		found[kind] = float64(life.Log.Records) / 1e3
		found[kind+" used"] = float64(life.Log.Used) / 1e3
		found[kind+" file"] = float64(life.Log.File) / 1e3
		found[kind+" share"] = found[kind] / life.Allowed()
		l.Note(fmt.Sprintf("%s, %s job: attempts %d, running hours %.1f, allowed %.0f KB; bytes by table: %s",
			t.Name, kind, life.Attempts, life.Hours, life.Allowed(), life.Log.tables()))
	}
	return found, nil
}

// program trains nothing: it counts ten steps a second, prints each, and saves at intervals.
const program = `mkdir -p checkpoints
s=0
[ -f checkpoints/step ] && s=$(cat checkpoints/step)
while [ "$s" -lt "$1" ]; do
  sleep 0.1
  s=$((s+1))
  echo "step $s/$1 loss 0.5"
  if [ $((s % $2)) = 0 ]; then
    echo "$s" > checkpoints/step.tmp
    mv checkpoints/step.tmp checkpoints/step
    echo "saved step $s"
  fi
done
`

// jobFile returns a job file for a number of steps. At speed 720 a market hour is five seconds, or 50 steps: one save
// an hour.
func jobFile(steps int, limits string) string {
	return fmt.Sprintf(`name: paired
command: exec sh program.sh %d 50
checkpoint: {dir: checkpoints}
progress:
  pattern: 'step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
  saved: 'saved step (?P<step>\d+)'
work: {steps: %[1]d}
resources: {cpus: 1+}
signal: TERM
grace: 3s
%s`, steps, limits)
}

// marketFile describes one on-demand machine and, for interrupted jobs, two spot zones whose prices change every half
// hour.
func marketFile(kind string) string {
	speed := fast
	if kind == realTime {
		speed = 1
	}
	head := fmt.Sprintf("name: paired\ncurrency: USD\nspeed: %d\nrepeat: 2h\noffers:\n", speed)
	offer := func(zone, capacity, rest string) string {
		return fmt.Sprintf("  - {zone: %s, region: us, machine: m1, cpus: 2, memory: 4GiB, capacity: %s, %s}\n",
			zone, capacity, rest)
	}
	text := head + offer("us-a", "on-demand", "price: 3.06")
	if kind == interrupted {
		text += offer("us-a", "spot", "notice: 4s, "+
			"price: [{at: 0s, price: 0.97}, {at: 30m, price: 0.99}, {at: 1h, price: 0.96}], "+
			"available: [{from: 0m, to: 40m, notice: 4s}, {from: 50m, to: 110m, notice: 0s}]")
		text += offer("us-b", "spot", "notice: 4s, "+
			"price: [{at: 0s, price: 0.98}, {at: 1h, price: 1.01}, {at: 90m, price: 0.95}], "+
			"available: [{from: 20m, to: 70m, notice: 0s}, {from: 80m, to: 120m, notice: 4s}]")
	}
	return text
}

// folder is a data folder with its own server and market.
type folder struct{ exe, dir string }

func newFolder(exe, temp, kind string, steps int, limits string) (*folder, error) {
	dir, err := os.MkdirTemp(temp, "d") // short, because the path of a socket is limited
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"w/job.yaml": jobFile(steps, limits), "w/program.sh": program, "market.yaml": marketFile(kind),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return &folder{exe, dir}, nil
}

func (f *folder) do(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--data", filepath.Join(f.dir, "d")}, args...)
	return run(ctx, f.dir, []string{"SCRIMP_TOKEN="}, f.exe, args...)
}

// stop ends the server and its machines, also after Ctrl-C.
func (f *folder) stop() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	_, err := f.do(ctx, "server", "stop", "--now")
	return err
}

func (f *folder) database() string { return filepath.Join(f.dir, "d", "scrimp.db") }

// status holds the fields of `scrimp status` that are read.
type status struct {
	State string
	Step  int64
}

// until polls the job's state; the limit only ends a hang.
func (f *folder) until(ctx context.Context, what string, ok func(status) bool, limit time.Duration) error {
	for begun := time.Now(); ; {
		text, err := f.do(ctx, "status", "paired", "--json")
		if err != nil {
			return err
		}
		var s status
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return fmt.Errorf("read the status of a job: %w", err)
		}
		switch {
		case ok(s):
			return nil
		case s.State == "failed" || s.State == "cancelled" || s.State == "stopped":
			return fmt.Errorf("wait until a job %s: it is %s: %s", what, s.State, tail(text, 1))
		case time.Since(begun) > limit:
			return fmt.Errorf("wait until a job %s: %v are over: %s", what, limit, tail(text, 1))
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// live runs a job to its end, with work for a number of market hours.
func live(ctx context.Context, exe, temp, kind string, hours float64) (l Life, err error) {
	steps := int(hours * 3600 / fast * 10)
	limits := fmt.Sprintf("deadline: in %.0fh\nbudget: $%.0f\n", 3*hours+4, 10*hours+20)
	f, err := newFolder(exe, temp, kind, steps, limits)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if _, err := f.do(ctx, "run", "w/job.yaml", "-y", "-d", "--market", "market.yaml"); err != nil {
		return l, err
	}
	limit := time.Minute + time.Duration(4*hours/fast*float64(time.Hour))
	if err := f.until(ctx, "is done", func(s status) bool { return s.State == "succeeded" }, limit); err != nil {
		return l, err
	}
	text, err := f.do(ctx, "receipt", "paired", "--json")
	if err != nil {
		return l, err
	}
	if l.Attempts, l.Hours, err = ran(text); err != nil {
		return l, err
	}
	if err := f.stop(); err != nil {
		return l, err
	}
	l.Log, err = measureLog(ctx, f.database(), true)
	return l, err
}

// ran returns the number of machines in a receipt and their total time.
func ran(receipt string) (attempts int, hours float64, err error) {
	var r struct {
		Attempts int
		Tries    []struct{ From, Until *time.Time }
	}
	if err := json.Unmarshal([]byte(receipt), &r); err != nil {
		return 0, 0, fmt.Errorf("read a receipt: %w", err)
	}
	for _, t := range r.Tries {
		if t.From != nil && t.Until != nil {
			hours += t.Until.Sub(*t.From).Hours()
		}
	}
	if r.Attempts == 0 || hours <= 0 {
		return 0, 0, fmt.Errorf("read a receipt: no machine ran: %s", strings.TrimSpace(receipt))
	}
	return r.Attempts, hours, nil
}

// watch returns the growth of a running job's log, in KB an hour, on a market in real time.
func watch(ctx context.Context, exe, temp string, span time.Duration) (rate float64, err error) {
	f, err := newFolder(exe, temp, realTime, 1_000_000, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	if _, err := f.do(ctx, "run", "w/job.yaml", "-y", "-d", "--market", "market.yaml"); err != nil {
		return 0, err
	}
	if err := f.until(ctx, "takes steps", func(s status) bool { return s.Step > 10 }, 2*time.Minute); err != nil {
		return 0, err
	}
	before, err := measureLog(ctx, f.database(), false)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := pause(ctx, span); err != nil {
		return 0, err
	}
	after, err := measureLog(ctx, f.database(), false)
	if err != nil {
		return 0, err
	}
	return float64(after.Records-before.Records) / 1e3 / time.Since(begun).Hours(), nil
}
