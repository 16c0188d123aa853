package slurm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/command"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var seeds = flag.Int("seeds", lane.Pick(30, 450), "clusters that hurt the driver, each by its seed")

// paper is a simulated cluster: Slurm's commands, with jobs that start, are preempted, lose their node and are
// forgotten. It loses answers, carries out commands that it reported as failed, shows accepted jobs late, and the
// driver's server dies between any two commands.
type paper struct {
	rng    *rand.Rand
	hurts  float64 // probability of a fault per command
	jobs   map[string]*paperJob
	next   int
	faults int
	dead   bool                // the server: no request is heard until it restarts
	rented map[string][]string // jobs that started their request, by name
}

type paperJob struct {
	id, name, comment, dir, state string
	submitted, shown, start, end  time.Time
	held                          bool
}

var errDead = errors.New("the server is dead")

func (p *paper) run(ctx context.Context, name string, args ...string) (string, error) {
	p.goesOn()
	if p.dead {
		return "", errDead
	}
	fault := p.rng.Float64() < p.hurts
	kind := p.rng.IntN(5)
	if fault {
		p.faults++
	}
	switch {
	case fault && kind == 0:
		return "", p.no(name, "Unable to contact slurm controller (connect failure)")
	case fault && kind == 1:
		<-ctx.Done()
		return "", context.Cause(ctx)
	case fault && kind == 2:
		p.dead = true
		return "", errDead
	}
	late := time.Duration(0)
	if fault && name == "sbatch" {
		late = time.Duration(p.rng.IntN(25)) * time.Second
	}
	out, err := p.do(name, args, late)
	if fault && kind == 3 {
		p.dead = true
		return "", errDead
	}
	if fault {
		return "", p.no(name, "Socket timed out on send/recv operation")
	}
	return out, err
}

func (p *paper) no(command, text string) error {
	return &scheduler.Error{Command: command, Text: text, Err: errors.New("exit status 1")}
}

// do runs a command.
func (p *paper) do(name string, args []string, late time.Duration) (string, error) {
	last := args[len(args)-1]
	switch name {
	case "scontrol":
		if slices.Contains(args, "config") {
			return "KillWait = 30 sec\n", nil
		}
		return "PartitionName=p DefaultTime=NONE MaxTime=UNLIMITED GraceTime=10 PreemptMode=REQUEUE State=UP\n", nil
	case "sinfo":
		return "n1|p*|8|4000|gpu:a100:4|idle|(null)|127.0.0.1|n1\nn2|p*|8|4000|gpu:a100:4|idle|(null)|127.0.0.1|n2\n", nil
	case "sacct":
		return "", p.no(name, "Slurm accounting storage is disabled")
	case "sbatch":
		p.next++
		j := &paperJob{id: fmt.Sprint(p.next), dir: filepath.Dir(last), state: "PENDING", submitted: time.Now(), shown: time.Now().Add(late)}
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, "--job-name="); ok {
				j.name = v
			}
			if v, ok := strings.CutPrefix(a, "--comment="); ok {
				j.comment = v
			}
		}
		p.jobs[j.id] = j
		return j.id + "\n", nil
	case "hold": // from slurmrestd
		j := p.jobs[last]
		if j == nil {
			return "", p.no(name, "Invalid job id specified")
		}
		j.held = args[0] == "true"
		return "", nil
	case "scancel":
		if j := p.jobs[last]; j != nil && (args[0] != "--state=PENDING" || j.state == "PENDING") && j.end.IsZero() {
			j.state, j.end = "CANCELLED", time.Now()
		}
		return "", nil
	}
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(p.jobs)) {
		if j := p.jobs[id]; !j.shown.After(time.Now()) {
			nodes := ""
			if !j.start.IsZero() {
				nodes = "n1"
			}
			fmt.Fprintf(&b, "%s|%s|None|%d|%d|%s|%s|%s\n", j.id, j.state, j.start.Unix(), j.end.Unix(), nodes, j.name, j.comment)
		}
	}
	return b.String(), nil
}

// goesOn lets accepted jobs start, end and be forgotten, each at random.
func (p *paper) goesOn() {
	running := map[string]bool{}
	for _, j := range p.jobs {
		running[j.name] = running[j.name] || j.state == "RUNNING"
	}
	for _, id := range slices.Sorted(maps.Keys(p.jobs)) {
		switch j := p.jobs[id]; {
		case j.shown.After(time.Now()):
		case j.state == "PENDING" && !j.held && !running[j.name] && p.rng.IntN(3) == 0:
			j.state, j.start = "RUNNING", time.Now()
			running[j.name] = true
			if !p.begins(j) {
				j.state, j.end = "COMPLETED", time.Now()
			}
		case j.state == "RUNNING" && p.hurts > 0 && p.rng.IntN(60) == 0:
			j.state, j.end = []string{"PREEMPTED", "NODE_FAIL", "COMPLETED"}[p.rng.IntN(3)], time.Now()
			if j.state != "NODE_FAIL" {
				_ = os.WriteFile(filepath.Join(j.dir, "end.0"), []byte(fmt.Sprint(time.Now().Unix())), 0o600)
			}
		case !j.end.IsZero() && time.Since(j.end) > time.Minute:
			delete(p.jobs, id)
		}
	}
}

// begins does what run.sh does first, and reports whether the job continues.
func (p *paper) begins(j *paperJob) bool {
	if os.Mkdir(filepath.Join(j.dir, "claim"), 0o700) != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(j.dir, "cancelled")); err == nil {
		return false
	}
	_ = os.WriteFile(filepath.Join(j.dir, "claim", "job"), []byte(j.id), 0o600)
	p.rented[j.name] = append(p.rented[j.name], j.id)
	return true
}

// hurt is a driver of a simulated cluster, and what it reported.
type hurt struct {
	*testing.T
	*paper
	d      *Driver
	dir    string
	exe    string
	seed   int
	rest   bool              // use slurmrestd
	told   map[string]string // last reported machine by key
	closed map[string]bool   // keys that are not requested again
}

func (h *hurt) server() {
	h.dead = false
	w := setting.With{Shared: h.dir, Currency: "USD", Partitions: []setting.Partition{{Name: "p", Rate: "3.6", HourRate: 3_600_000_000_000, Priced: true}}}
	d, err := newDriver("hpc", w, h.dir, slog.New(slog.DiscardHandler))
	must.Do(h, err)
	d.slurm, d.exe, d.server = &command.Client{Run: h.run}, h.exe, "http://server"
	if h.rest {
		d.slurm = h.slurmrestd()
	}
	h.d = d
}

// acts does one random thing.
func (h *hurt) acts(ctx context.Context) {
	key := fmt.Sprintf("k.%d", h.rng.IntN(6))
	switch n := h.rng.IntN(12); {
	case n < 5 && !h.closed[key]:
		h.launches(ctx, key)
	case n == 5 && h.told[key] == "":
		h.closed[key] = true
		if err := h.d.Cancel(ctx, key); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.closed[key] = false // it is requested again, or continues
		}
	case n == 6 && h.told[key] != "":
		_ = h.d.Terminate(ctx, h.told[key])
	case n == 7:
		h.server()
	case n == 8:
		h.lists(ctx)
	default:
		_ = wait.For(ctx, time.Duration(1+h.rng.IntN(20))*time.Second)
	}
	if h.dead {
		h.server()
	}
}

func (h *hurt) launches(ctx context.Context, key string) {
	list, err := h.d.Launch(ctx, engine.Request{Key: key, Nodes: 1, Offer: "hpc/p/a100x4-8c-3g/spot",
		Env: map[string]string{"SCRIMP_TOKEN": "t", "SCRIMP_SERVER": "http://server"}})
	if err != nil {
		return
	}
	if was := h.told[key]; len(list) != 1 || was != "" && was != list[0].ID || list[0].Key != key {
		h.Errorf("seed %d: key %s was %q and is %+v", h.seed, key, was, list)
		return
	}
	h.told[key] = list[0].ID
}

// lists compares the list with earlier answers: no machine is missing, and no key occurs twice.
func (h *hurt) lists(ctx context.Context) map[string]engine.Instance {
	list, err := h.d.List(ctx)
	if err != nil {
		return nil
	}
	keys := map[string]engine.Instance{}
	for _, i := range list {
		if other, twice := keys[i.Key]; twice {
			h.Errorf("seed %d: key %s is %s and %s", h.seed, i.Key, other.ID, i.ID)
		}
		keys[i.Key] = i
	}
	for key, id := range h.told {
		if keys[key].ID != id {
			h.Errorf("seed %d: %s was rented for %s, and listed is %+v", h.seed, id, key, keys[key])
		}
	}
	return keys
}

// settles ends the faults, and compares the cluster with the driver's reports. Then it terminates everything.
func (h *hurt) settles(ctx context.Context) {
	h.hurts = 0
	h.server()
	for range 2 { // the first poll terminates pending releases, while the cluster continues
		_ = wait.For(ctx, time.Minute)
		h.lists(ctx)
	}
	keys := h.lists(ctx)
	for name, jobs := range h.rented {
		if len(jobs) > 1 {
			h.Errorf("seed %d: %s was rented %d times, as %v", h.seed, name, len(jobs), jobs)
		}
	}
	for _, j := range h.jobs {
		if r, ok := record.Of(&scheduler.Job{ID: j.id, Name: j.name, Comment: j.comment}); j.state == "RUNNING" &&
			(!ok || keys[r.Key].State != engine.Running || keys[r.Key].ID != "hpc-"+j.id+"-0") {
			h.Errorf("seed %d: job %s of %s runs, and listed is %+v", h.seed, j.id, j.name, keys[r.Key])
		}
	}
	for n := range 6 {
		if err := h.d.Cancel(ctx, fmt.Sprintf("k.%d", n)); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.Errorf("seed %d: cancel: %v", h.seed, err)
		}
	}
	for _, i := range h.lists(ctx) {
		if err := h.d.Terminate(ctx, i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.Errorf("seed %d: terminate: %v", h.seed, err)
		}
	}
	_ = wait.For(ctx, time.Minute)
	h.lists(ctx)
	for _, j := range h.jobs {
		if j.end.IsZero() {
			h.Errorf("seed %d: all is given back, and job %s of %s is %s", h.seed, j.id, j.name, j.state)
		}
	}
}

// Despite thousands of lost and delayed answers, hanging commands, and deaths of the server between any two commands,
// no key rents twice, no machine is lost, and nothing stays when everything is terminated.
func TestFaults_RentNothingTwiceAndLoseNothing(t *testing.T) {
	t.Parallel()
	faulty(t, false)
}

// The same holds for a driver that uses slurmrestd.
func TestFaultsOverREST_RentNothingTwiceAndLoseNothing(t *testing.T) {
	t.Parallel()
	faulty(t, true)
}

func faulty(t *testing.T, rest bool) {
	faults := 0
	for seed := range *seeds {
		dir, err := os.MkdirTemp(memory(), "faults")
		must.Do(t, err)
		exe := filepath.Join(dir, "exe")
		if err := os.WriteFile(exe, []byte("agent"), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			h := &hurt{T: t, dir: dir, exe: exe, seed: seed, rest: rest, told: map[string]string{}, closed: map[string]bool{},
				paper: &paper{rng: rand.New(rand.NewPCG(uint64(seed), 16)), hurts: 0.3, jobs: map[string]*paperJob{},
					rented: map[string][]string{}}}
			h.server()
			for range 150 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				h.acts(ctx)
				cancel()
			}
			h.settles(t.Context())
			faults += h.faults
		})
		_ = os.RemoveAll(dir)
		if t.Failed() {
			t.Fatalf("go test ./internal/engine/slurm -run %s -seeds %d repeats it", t.Name(), seed+1)
		}
	}
	t.Logf("%d faults", faults)
}

// memory returns a folder on a file system in memory; empty means the default one.
func memory() string {
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		return "/dev/shm"
	}
	return ""
}
