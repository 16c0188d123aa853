package meter

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/lib/child"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/telemetry"
)

// How often to read GPUs, and the share of a processor that this may cost: the slower nvidia-smi,
// the less often it runs. After an error the pause doubles.
const (
	gpuEvery    = 10 * time.Second
	gpuShare    = 200 // at most 1/gpuShare of a processor
	maxGPUPause = 5 * time.Minute
	smiTime     = 30 * time.Second
)

// gpuQuery lists the queried fields in order. Older drivers know all of them.
var gpuQuery = []string{"index", "name", "driver_version", "utilization.gpu", "memory.used", "memory.total",
	"power.draw", "power.limit", "temperature.gpu"}

// Reading is one reading of one GPU. NaN means unknown.
type Reading struct {
	telemetry.Device
	Driver                                      string
	Utilization, MemoryUsed, Watts, Temperature float64
}

// GPUs reads the GPUs of a machine for all its tasks, and only on demand.
type GPUs struct {
	once sync.Once
	wish chan struct{}

	mu    sync.Mutex
	list  []Reading
	at    time.Time     // time of the reading
	fresh time.Duration // how long the reading is valid
}

func (g *GPUs) init() { g.once.Do(func() { g.wish = make(chan struct{}, 1) }) }

// Run reads the GPUs repeatedly until ctx is done. It returns at once if there is no nvidia-smi.
func (g *GPUs) Run(ctx context.Context) {
	g.init()
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return
	}
	pause := gpuEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wish:
		}
		list, cost, err := ask(ctx, smi)
		if err != nil {
			pause = min(2*pause, maxGPUPause)
		} else {
			pause = max(gpuEvery, min(cost*gpuShare, maxGPUPause))
			g.keep(list, time.Now(), pause+pause/2)
		}
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}

func (g *GPUs) keep(list []Reading, at time.Time, long time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list, g.at, g.fresh = list, at, long
}

// Latest returns the newest valid reading, or nil, and requests another one.
func (g *GPUs) Latest(now time.Time) []Reading {
	g.init()
	select {
	case g.wish <- struct{}{}:
	default:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.at) > g.fresh {
		return nil
	}
	return g.list
}

// ask runs nvidia-smi once, and returns the processor time that it used.
func ask(ctx context.Context, smi string) (list []Reading, cost time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, smiTime)
	defer cancel()
	cmd := child.Command(ctx, smi, "--query-gpu="+strings.Join(gpuQuery, ","), "--format=csv,noheader,nounits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that CollectOrphans leaves its exit to cmd
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	cmd.WaitDelay = time.Second // do not wait for a process that hangs in the driver
	out, err := cmd.Output()
	if cmd.ProcessState != nil {
		cost = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		return nil, cost, fmt.Errorf("ask nvidia-smi: %w", err)
	}
	list, err = ParseSMI(string(out))
	return list, cost, err
}

var errSMI = errors.New("nvidia-smi returned an unexpected answer")

// ParseSMI parses a table of nvidia-smi without units. Values that nvidia-smi does not report
// ([N/A], [Not Supported], [Unknown Error], …) become unknown, never zero.
func ParseSMI(out string) (list []Reading, err error) {
	r := csv.NewReader(strings.NewReader(out))
	r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes = true, -1, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSMI, err)
	}
	for _, row := range rows {
		if len(row) != len(gpuQuery) {
			return nil, fmt.Errorf("%w: %q", errSMI, strings.Join(row, ", "))
		}
		index, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil || index < 0 {
			return nil, fmt.Errorf("%w: a GPU with the index %q", errSMI, row[0])
		}
		g := Reading{Driver: row[2], Utilization: min(1, known(row[3], 0.01)), MemoryUsed: known(row[4], 1<<20),
			Watts: known(row[6], 1), Temperature: known(row[8], 1)}
		g.Device = telemetry.Device{Index: index, Name: row[1]}
		if all := known(row[5], 1<<20); all > 0 {
			g.Memory = int64(all)
		}
		if limit := known(row[7], 1); limit > 0 {
			g.Power = limit
		}
		list = append(list, g)
	}
	return list, nil
}

// known parses a number of nvidia-smi and multiplies it by its unit.
func known(text string, unit float64) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || v < 0 {
		return telemetry.Unknown.Mean
	}
	return v * unit
}

// Put appends the GPUs' readings to a bucket, in their order, and returns their constant properties.
func Put(list []Reading, to *telemetry.Bucket) (head telemetry.Head) {
	list = list[:min(len(list), telemetry.MaxGPUs)]
	for _, g := range list {
		for m, v := range map[telemetry.Metric]float64{telemetry.GPU: g.Utilization, telemetry.GPUMemory: g.MemoryUsed,
			telemetry.GPUPower: g.Watts, telemetry.GPUTemperature: g.Temperature} {
			to.V[m] = append(to.V[m], telemetry.Exactly(v))
		}
		head.GPUs, head.Driver = append(head.GPUs, g.Device), g.Driver
	}
	return head
}
