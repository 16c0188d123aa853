package multizone

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"scrimp/internal/lib/money"
)

// optimumVersion changes whenever the meaning of Optimum does.
const optimumVersion = 1

// zonesKey hashes everything that the runs' optima depend on.
func zonesKey(runs []Run) string {
	h := sha256.New()
	fmt.Fprintln(h, "zones optimum", optimumVersion)
	for _, r := range runs {
		j := &r.Job
		fmt.Fprintln(h, j.Tick, j.Work, j.Deadline, j.Restart, j.Transfer, j.Carry)
		for _, from := range j.Zones { // a market with one price for all routes keeps its old key
			for _, to := range j.Zones {
				if c := j.Moving(from.Region, to.Region); from.Region != to.Region && c != j.Carry {
					fmt.Fprintln(h, from.Region, to.Region, c)
				}
			}
		}
		for i, t := range r.Traces {
			fmt.Fprintln(h, j.Zones[i].Region, j.Zones[i].OnDemand, t.Up[:j.Ticks()], t.Price[:j.Ticks()])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrNotKept reports that the optima were computed but could not be stored.
var ErrNotKept = errors.New("the optimum is not kept, and takes as long the next time")

// Optima returns the optimum of every run. It reads them from a file of folder if the same runs were solved before;
// otherwise it computes them, which takes minutes, and stores them there. An empty folder stores nothing. If storing
// fails, Optima returns the optima with ErrNotKept. tell, if not nil, receives the progress. The context can stop
// it between two runs.
func Optima(ctx context.Context, runs []Run, folder string, tell func(done, of int)) ([]money.Amount, error) {
	file := filepath.Join(folder, "zones-optimum-"+zonesKey(runs)[:32]+".json")
	if folder != "" {
		if data, err := os.ReadFile(file); err == nil { // an unreadable file is computed again
			var out []money.Amount
			if json.Unmarshal(data, &out) == nil && len(out) == len(runs) {
				return out, nil
			}
		}
	}
	out := make([]money.Amount, len(runs))
	late := make([]bool, len(runs))
	var mu sync.Mutex
	done := 0
	each(len(runs), func(i int) {
		if ctx.Err() != nil {
			return
		}
		best, ok := runs[i].Optimum()
		out[i], late[i] = best, !ok
		mu.Lock()
		defer mu.Unlock()
		done++
		if tell != nil {
			tell(done, len(runs))
		}
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for i, l := range late {
		if l {
			return nil, fmt.Errorf("solve run %d of window %d: no choice meets its deadline", i, runs[i].Window)
		}
	}
	if folder == "" {
		return out, nil
	}
	if err := keepOptima(folder, file, out); err != nil {
		return out, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return out, nil
}

// keepOptima writes a temporary file and renames it, so that concurrent programs do not interfere.
func keepOptima(folder, file string, optima []money.Amount) error {
	data, err := json.Marshal(optima)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	aside := file + fmt.Sprintf(".%d", os.Getpid())
	if err := os.WriteFile(aside, data, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, file)
}

// each calls do with 0 to n−1 on as many goroutines as there are processors, and returns when all calls are done.
func each(n int, do func(int)) {
	var at atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(at.Add(1)) - 1; i < n; i = int(at.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
