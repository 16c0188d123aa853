// Package host describes the agent's machine: its memory, its addresses, its boot, and the use of
// its accelerators.
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

// Limits for nvidia-smi and for the time in which the driver releases the memory of ended
// processes, and the variation of an idle accelerator's memory use.
const (
	smiTime      = 30 * time.Second
	releaseTime  = 5 * time.Second
	releasePoll  = 200 * time.Millisecond
	releaseSlack = 64 // MiB
)

// Accelerators records the use of the machine's accelerators before the first task. Any use beyond
// that belongs to a task.
type Accelerators struct {
	Path  string // file for the first reading
	once  sync.Once
	First accelerated
	err   error
}

// accelerated is one reading of all accelerators.
type accelerated struct {
	Boot      string           `json:"boot"`
	Devices   int              `json:"devices"`
	Processes []int            `json:"processes"`
	Memory    map[string]int64 `json:"memory_mib"` // by device; devices that do not report it are missing
}

// Before records the use of the accelerators before the first task, once.
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

// Released returns an error if the accelerators are in use beyond the first reading. It waits a
// moment, because drivers release memory only after a process has ended.
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

// beyond returns an error for use that the first reading did not show. No process of a task runs
// any more, so a process that exists on this system does not belong to one.
func (x *Accelerators) beyond(now accelerated) error {
	for _, pid := range now.Processes {
		if !slices.Contains(x.First.Processes, pid) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return fmt.Errorf("an accelerator is used by process %d, which is outside this system or has just ended", pid)
		}
	}
	for device, used := range now.Memory {
		if was := x.First.Memory[device]; used > was+releaseSlack {
			return fmt.Errorf("%d MiB of accelerator %s are in use, %d before the first task", used, device, was)
		}
	}
	return nil
}

// look reads the accelerators' use from nvidia-smi. Without nvidia-smi and NVIDIA devices, nothing is in use.
func look(ctx context.Context) (accelerated, error) {
	ctx, cancel := context.WithTimeout(ctx, smiTime)
	defer cancel()
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		if devices, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(devices) > 0 {
			return accelerated{}, fmt.Errorf("the machine has %s but no nvidia-smi: %w", devices[0], fs.ErrNotExist)
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
		if n, err := strconv.ParseInt(strings.TrimSpace(used), 10, 64); err == nil { // some devices do not report it
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

// ask returns the lines of nvidia-smi's answer.
func ask(ctx context.Context, smi, query string) (lines []string, err error) {
	cmd := child.Command(ctx, smi, query, "--format=csv,noheader,nounits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that CollectOrphans leaves its exit to cmd
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
