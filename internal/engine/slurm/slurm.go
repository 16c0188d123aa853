// Package slurm rents machines from a Slurm cluster as an ordinary user: an allocation is a batch job that starts the
// agent on its nodes, a partition is the zone of its offers, and all information comes from sbatch, squeue, scancel,
// sinfo, scontrol and sacct, or from slurmrestd.
package slurm

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/command"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/rest"
	"scrimp/internal/engine/slurm/sale"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/market"
)

// Kind is the kind of this package's engines.
const Kind = "slurm"

// usual is a cluster's typical timing: a controller should not be polled more often, and lists what it has accepted
// at once.
var usual = engine.Timing{Poll: 3 * time.Second, Sweep: time.Minute, Boot: 10 * time.Minute, Start: 15 * time.Second,
	Consistency: 15 * time.Second,
	GrantWait:   time.Minute, Detect: 10 * time.Second}

// The maximal ages of answers.
const (
	viewAge    = time.Second      // of squeue, within a poll
	clusterAge = 30 * time.Second // of sinfo and scontrol
	seenEvery  = time.Minute      // how often a record notes that its job runs
)

// Driver implements engine.Driver for one cluster.
type Driver struct {
	with    setting.With
	store   record.Store
	exe     string // this program
	server  string // the server's address, as given to agents
	slurm   scheduler.Scheduler
	log     *slog.Logger
	start   time.Duration // how long a launch waits for its job to start
	patient time.Duration // how long a job may be unknown before it counts as gone

	program sync.Mutex
	agent   string // exe in the shared folder; guarded by program

	looking chan struct{} // one squeue at a time
	view    *view         // the newest; owned by the holder of looking

	reading chan struct{}      // one sinfo at a time
	cluster *scheduler.Cluster // the newest; owned by the holder of reading

	mu       sync.Mutex
	records  map[string]*record.Record // by key
	turns    map[string]chan struct{}
	troubles map[string]trouble // by zone
}

// trouble is what kept a node from working for us.
type trouble struct {
	at   time.Time
	text string
}

var (
	_ engine.Driver    = (*Driver)(nil)
	_ engine.Canceller = (*Driver)(nil)
	_ engine.Biller    = (*Driver)(nil)
	_ engine.Examiner  = (*Driver)(nil)
)

// Open opens the engine of a cluster without contacting it, so it succeeds while the cluster does not answer.
func Open(_ context.Context, s engine.Setting, h engine.Host) (engine.Engine, error) {
	with, err := setting.Read(&s)
	if err != nil {
		return engine.Engine{}, err
	}
	agents, err := h.AgentURL(s)
	if err != nil {
		return engine.Engine{}, err
	}
	exe := h.Exe
	if exe == "" {
		if exe, err = os.Executable(); err != nil {
			return engine.Engine{}, fmt.Errorf("find the agent's program: %w", err)
		}
	}
	d, err := newDriver(s.Name, with, cmp.Or(with.Shared, filepath.Join(h.Dir, "engines", s.Name)),
		cmp.Or(h.Log, slog.New(slog.DiscardHandler)))
	if err != nil {
		return engine.Engine{}, err
	}
	d.exe, d.server = exe, agents
	client := engine.DefaultClient()
	client.Tries = 2 // each may take as long as a command
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: s.Timing.Over(usual), AgentURL: agents,
		Users: cmp.Or(s.Users, engine.UsersSame), Seats: int(s.Seats), Client: &client}, nil
}

func newDriver(name string, with setting.With, shared string, log *slog.Logger) (*Driver, error) {
	shared, err := filepath.Abs(shared)
	if err != nil {
		return nil, err
	}
	if with.Shared != "" { // engines of one cluster may share it
		shared = filepath.Join(shared, name)
	}
	d := &Driver{store: record.Store{Engine: name, Dir: shared}, with: with, slurm: schedulerOf(&with), log: log,
		start: 2 * time.Second, patient: 10 * time.Minute,
		looking: make(chan struct{}, 1), reading: make(chan struct{}, 1),
		turns: map[string]chan struct{}{}, troubles: map[string]trouble{}}
	if err := os.MkdirAll(filepath.Join(shared, "requests"), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder that nodes see too: %w: set shared under with to one that "+
			"they do", err)
	}
	if d.records, err = d.store.Load(log); err != nil {
		return nil, err
	}
	return d, nil
}

// schedulerOf returns the client of a cluster.
func schedulerOf(w *setting.With) scheduler.Scheduler {
	if w.REST != nil {
		return rest.New(w.REST)
	}
	return command.New(w.Commands, w.Conf)
}

// sold returns the offers and the state of the cluster, no older than age.
func (d *Driver) sold(ctx context.Context, age time.Duration) ([]sale.Sale, *scheduler.Cluster, error) {
	select {
	case d.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	defer func() { <-d.reading }()
	if d.cluster == nil || time.Since(d.cluster.At) > age {
		names := make([]string, len(d.with.Partitions))
		for n := range names {
			names[n] = d.with.Partitions[n].Name
		}
		c, err := d.slurm.Cluster(ctx, names)
		if err != nil {
			return nil, nil, err
		}
		d.cluster = c
	}
	return sale.Of(d.cluster, d.store.Engine, &d.with, isHere), d.cluster, nil
}

// isHere reports whether a node is this machine.
func isHere(n scheduler.Node) bool {
	own, err := os.Hostname()
	short := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	if err == nil && (short(n.Host) == short(own) || short(n.Address) == short(own)) {
		return true
	}
	ip := net.ParseIP(n.Address)
	return ip != nil && ip.IsLoopback()
}

// Offers implements engine.Driver. A machine in use still counts as available: its launch waits in the queue.
func (d *Driver) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	sales, _, err := d.sold(ctx, clusterAge)
	if err != nil {
		return nil, nil, err
	}
	offers, quotes := make([]market.Offer, len(sales)), make([]market.Quote, len(sales))
	for n, s := range sales {
		offers[n], quotes[n] = s.Offer, s.Quote
	}
	return offers, quotes, nil
}

// turn lets one call at a time work on a key. The caller calls end when it is done.
func (d *Driver) turn(ctx context.Context, key string) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	t := d.turns[key]
	if t == nil {
		t = make(chan struct{}, 1)
		d.turns[key] = t
	}
	d.mu.Unlock()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// known returns a copy of a key's record, also one that another server wrote; nil if there is none.
func (d *Driver) known(key string) (*record.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.records[key]
	if r == nil {
		var err error
		if r, err = d.store.Read(record.NameOf(key)); err != nil || r == nil {
			return nil, err
		}
		d.records[key] = r
	}
	c := *r
	return &c, nil
}

// change changes a key's record durably before anybody acts on it.
func (d *Driver) change(key string, f func(*record.Record)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := *d.records[key]
	f(&c)
	if err := d.store.Keep(&c); err != nil {
		return err
	}
	d.records[key] = &c
	return nil
}
