// Package host says what the machine of an agent is: its memory, its addresses, its boot, and what its accelerators
// are used for.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/lib/child"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/wait"
)

// How long nvidia-smi may take, how long the driver may take to release what ended
// processes had, and by how much the memory in use of an idle accelerator varies.
const (
	smiTime      = 30 * time.Second
	releaseTime  = 5 * time.Second
	releasePoll  = 200 * time.Millisecond
	releaseSlack = 64 // MiB
)

// Accelerators is what the machine's accelerators were used for before the first task:
// what they are used for beyond that is a task's.
type Accelerators struct {
	Path  string // where the first look is kept
	once  sync.Once
	First accelerated
	err   error
}

// accelerated is what the accelerators are used for.
type accelerated struct {
	Boot      string           `json:"boot"`
	Devices   int              `json:"devices"`
	Processes []int            `json:"processes"`
	Memory    map[string]int64 `json:"memory_mib"` // by device, where it is told
}

// Before looks at the accelerators, once, before the first task.
func (x *Accelerators) Before() {
	x.once.Do(func() {
		b, err := os.ReadFile(x.Path)
		if err == nil && json.Unmarshal(b, &x.First) == nil && x.First.Boot == BootID() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), smiTime)
		defer cancel()
		if x.First, x.err = look(ctx); x.err != nil || x.First.Memory == nil {
			return
		}
		x.First.Boot = BootID()
		if b, x.err = json.Marshal(x.First); x.err == nil {
			x.err = durable.Replace(x.Path, b)
		}
	})
}

// Released reports what the accelerators are used for beyond what they were before the
// first task. It waits a moment: drivers release memory after a process' end.
func (x *Accelerators) Released(ctx context.Context) error {
	x.Before()
	if x.err != nil {
		return x.err
	}
	for deadline := time.Now().Add(releaseTime); ; {
		now, err := look(ctx)
		if err == nil {
			err = x.beyond(now)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := wait.For(ctx, releasePoll); err != nil {
			return err
		}
	}
}

// beyond reports what is used now and was not before. No process of a task lives any more,
// so one that this system lists is another's.
func (x *Accelerators) beyond(now accelerated) error {
	for _, pid := range now.Processes {
		if !slices.Contains(x.First.Processes, pid) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return fmt.Errorf("an accelerator is used by process %d, which is not of this system or has just ended", pid)
		}
	}
	for device, used := range now.Memory {
		if was := x.First.Memory[device]; used > was+releaseSlack {
			return fmt.Errorf("%d MiB of accelerator %s are in use, %d before the first task", used, device, was)
		}
	}
	return nil
}

// look asks nvidia-smi; where there is none, and no device that it is for, nothing is used.
func look(ctx context.Context) (accelerated, error) {
	ctx, cancel := context.WithTimeout(ctx, smiTime)
	defer cancel()
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		if devices, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(devices) > 0 {
			return accelerated{}, fmt.Errorf("the machine has %s, and no nvidia-smi: %w", devices[0], fs.ErrNotExist)
		}
		return accelerated{}, nil
	}
	memory, err := ask(ctx, smi, "--query-gpu=uuid,memory.used")
	if err != nil {
		return accelerated{}, err
	}
	processes, err := ask(ctx, smi, "--query-compute-apps=pid")
	if err != nil {
		return accelerated{}, err
	}
	a := accelerated{Memory: map[string]int64{}}
	a.Devices = len(memory)
	for _, line := range memory {
		device, used, _ := strings.Cut(line, ",")
		if n, err := strconv.ParseInt(strings.TrimSpace(used), 10, 64); err == nil { // some devices do not tell
			a.Memory[device] = n
		}
	}
	for _, line := range processes {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return a, fmt.Errorf("nvidia-smi lists the process %q", line)
		}
		a.Processes = append(a.Processes, pid)
	}
	return a, nil
}

// ask returns the lines that nvidia-smi answers.
func ask(ctx context.Context, smi, query string) (lines []string, err error) {
	cmd := child.Command(ctx, smi, query, "--format=csv,noheader,nounits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // its exit is for us: see program.CollectOrphans
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi %s: %w", query, err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
