package marketd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/procs"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// machine is an instance and its processes.
type machine struct {
	engine.Instance
	Wall    time.Time     `json:"wall"`       // launch
	EndWall time.Time     `json:"end_wall"`   // end
	PID     int           `json:"pid"`        // first process; 0: unknown
	Begun   string        `json:"begun"`      // start time of that process, to tell it from a later one with the same id
	Host    string        `json:"host"`       // address of its metadata service
	Port    int           `json:"port"`       // port of its metadata service
	LostAt  time.Time     `json:"lost_at"`    // market time of the interruption; zero: never
	Warning time.Duration `json:"warning_ns"` // wall time of notice before the interruption

	// Foreign is set if the folder was copied while the machine ran. The original folder's market
	// interrupts the machine and serves its metadata; this one ends it only on request.
	Foreign bool `json:"foreign,omitempty"`

	meta   *http.Server
	served time.Time // wall time at which its metadata service started
	ending bool
	over   chan struct{} // closed when its end is written
	exited chan struct{} // closed when the first process has ended, if this daemon started it
}

// number returns the number in the machine's id; 0: none.
func (m *machine) number(prefix string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(m.ID, "i-"+prefix+"-"))
	return n
}

// maxLaunch is the largest number of machines in a launch, since they are processes on one computer.
const maxLaunch = 1000

// launch rents all machines of a request or none. For a used key it returns the machines of the first call.
func (d *daemon) launch(r engine.Request) ([]engine.Instance, error) {
	if r.Key == "" || r.Nodes < 0 || r.Nodes > maxLaunch {
		return nil, fmt.Errorf("%w: a launch of %d machines with key %q: it needs a key, and is of at most %d",
			engine.ErrRequest, r.Nodes, r.Key, maxLaunch)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if gang := d.keys[r.Key]; gang != nil {
		return instances(gang), nil
	}
	gang, err := d.choose(&r)
	if err != nil {
		return nil, err
	}
	if err := d.begin(gang, r.Env); err != nil {
		return nil, fmt.Errorf("launch %s: %w", r.Offer, err)
	}
	return instances(gang), nil
}

func instances(gang []*machine) []engine.Instance {
	list := make([]engine.Instance, len(gang))
	for n, m := range gang {
		list[n] = m.Instance
	}
	return list
}

// choose returns the machines for a request, or the reason for refusing it. The caller holds mu.
func (d *daemon) choose(r *engine.Request) ([]*machine, error) {
	line, ok := d.opened.Trace.Line(r.Offer)
	if !ok {
		return nil, fmt.Errorf("offer %s: %w", r.Offer, engine.ErrNotFound)
	}
	now := d.now()
	q := d.opened.Trace.Quote(line, d.since(now), d.opened.At)
	switch {
	case !q.Available:
		return nil, fmt.Errorf("offer %s: %w", r.Offer, engine.ErrNoCapacity)
	case r.MaxRate > 0 && q.Rate > r.MaxRate:
		return nil, fmt.Errorf("offer %s costs %v an hour, the request allows %v: %w", r.Offer, q.Rate,
			r.MaxRate, engine.ErrPrice)
	}
	gang := make([]*machine, r.Machines())
	for n := range gang {
		d.seq++
		m := &machine{
			Instance: engine.Instance{ID: fmt.Sprintf("i-%s-%d", d.opened.Prefix, d.seq), Key: r.Key, Offer: r.Offer,
				State: engine.Running, Launched: now, Rate: q.Rate, Tags: r.Tags},
			Wall: d.wall(), over: make(chan struct{}),
		}
		if lost, notice, ok := d.opened.Trace.Loss(line, d.since(now)); ok {
			m.LostAt, m.Warning = d.opened.At.Add(lost), notice
		}
		gang[n] = m
	}
	return gang, nil
}

// begin records the machines and starts them. If one of them does not start, none counts as rented.
// The caller holds mu.
func (d *daemon) begin(gang []*machine, env map[string]string) error {
	for n, m := range gang {
		if err := d.serveMeta(m, gang[:n]...); err != nil {
			stopMetadata(gang[:n])
			return err
		}
	}
	// Write them before they start: a daemon that dies here leaves machines without a process,
	// which the next one ends, and not a process without a machine.
	if err := d.journal.append(recordOf(gang)); err != nil {
		stopMetadata(gang)
		return err
	}
	for n, m := range gang {
		if err := d.start(m, env); err != nil {
			return errors.Join(err, d.void(gang, gang[:n]))
		}
	}
	if err := d.journal.append(recordOf(gang)); err != nil { // the next daemon searches for their processes
		d.opts.Log.Error("cannot record the launch", "key", gang[0].Key, "machines", len(gang), "error", err)
	}
	d.rented(gang)
	for _, m := range gang {
		d.opts.Log.Info("rented", "instance", m.ID, "offer", m.Offer, "key", m.Key)
	}
	return nil
}

// void undoes a launch whose machines are partly running, without a bill. The caller holds mu.
func (d *daemon) void(gang, running []*machine) error {
	ids := make([]string, len(gang))
	for n, m := range gang {
		ids[n] = m.ID
	}
	for _, m := range running {
		if !procs.KillAll(m.ID, m.PID, m.Begun) {
			d.opts.Log.Error("cannot kill the machine's processes", "instance", m.ID)
		}
	}
	if err := d.journal.append(record{Voids: ids}); err != nil {
		d.rented(gang) // the journal says that they run: they must end there too
		return err
	}
	stopMetadata(gang)
	return nil
}

// rented adds the machines of a launch. The caller holds mu.
func (d *daemon) rented(gang []*machine) {
	d.list = append(d.list, gang...)
	d.keys[gang[0].Key] = gang
	for _, m := range gang {
		d.tasks.Go(func() { d.watch(m) })
	}
}

// watch ends the machine at its interruption, or after its first process has ended. It reads the
// wall clock each time, because a timer stands still while the computer sleeps.
func (d *daemon) watch(m *machine) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for looks := 0; ; looks++ {
		select {
		case <-d.quit:
			return // the machine keeps running; the next daemon tends it
		case <-m.over:
			return
		case <-m.exited: // nil, so never, if an earlier daemon started it
		case <-timer.C:
		}
		d.mu.Lock()
		if m.ending {
			d.mu.Unlock()
			return
		}
		if m.meta == nil && !m.Foreign {
			if err := d.serveMeta(m); err != nil && looks%50 == 0 { // its port is in use at the moment
				d.opts.Log.Error("metadata not served", "instance", m.ID, "error", err)
			}
		}
		wait := d.endIfDue(m, looks)
		d.mu.Unlock()
		timer.Reset(wait)
	}
}

// endIfDue ends a machine whose interruption is due or whose first process has ended, and returns the wait until the
// next look. An interruption ends no machine of another folder.
func (d *daemon) endIfDue(m *machine, looks int) (wait time.Duration) {
	now, lost := d.now(), !m.Foreign && !m.LostAt.IsZero()
	switch {
	case lost && !now.Before(m.LostAt):
		m.Notice = d.given(m)
		_ = d.finish(m, engine.Interrupted, m.LostAt)
	case d.gone(m, looks):
		_ = d.finish(m, engine.Stopped, now)
	case lost:
		return min(lookProcess, max(time.Millisecond, d.toWall(m.LostAt).Sub(d.wall())))
	}
	return lookProcess
}

// gone reports whether the machine's first process has ended. The caller holds mu.
func (d *daemon) gone(m *machine, looks int) bool {
	if m.exited != nil {
		select {
		case <-m.exited:
			return true
		default:
			return false
		}
	}
	// The previous daemon died after it started the machine and before it recorded that. A forked
	// process may not have its name yet.
	if m.PID == 0 && looks < 5 {
		m.PID, m.Begun = procs.First(m.ID)
		return false
	}
	return !procs.Alive(m.PID, m.Begun)
}

// given returns the notice that the machine could see before an interruption now. It is shorter
// than promised if the machine was rented later, or if its metadata service did not answer.
func (d *daemon) given(m *machine) time.Duration {
	if m.served.IsZero() {
		return 0
	}
	until := d.toWall(m.LostAt)
	from := until.Add(-m.Warning)
	for _, later := range []time.Time{m.Wall, m.served} {
		if later.After(from) {
			from = later
		}
	}
	return max(0, until.Sub(from))
}

// finish kills the machine and ends its bill at a market time, once. It returns after the end is on
// disk. The caller holds mu, which finish releases meanwhile.
func (d *daemon) finish(m *machine, cause engine.Cause, at time.Time) error {
	if m.ending {
		over := m.over
		d.mu.Unlock()
		defer d.mu.Lock()
		limit := time.NewTimer(5 * time.Second)
		defer limit.Stop()
		select {
		case <-over:
			return nil
		case <-limit.C:
			return fmt.Errorf("instance %s is ending, but the end is not recorded yet", m.ID)
		}
	}
	m.ending = true
	d.mu.Unlock()
	ours := !m.Foreign || cause == engine.Terminated // the other folder owns the rest
	switch dead := !ours || procs.KillAll(m.ID, m.PID, m.Begun); {
	case !dead:
		d.opts.Log.Error("cannot kill the machine's processes", "instance", m.ID)
	case ours:
		d.wipe(m.ID)
	}
	d.mu.Lock()
	m.stopMetadata()
	end := d.bill(m, cause, at)
	err := d.journal.append(record{Machine: end})
	if err != nil {
		// Report no end that is not written: a later attempt could give another one.
		d.opts.Log.Error("cannot record the end; retrying", "instance", m.ID, "error", err)
		d.tasks.Go(func() { d.writeEnd(m, end) })
		return err
	}
	d.ended(m, end)
	return nil
}

// writeEnd retries to write an end until it succeeds or the daemon stops.
func (d *daemon) writeEnd(m, end *machine) {
	t := time.NewTicker(retryEnd)
	defer t.Stop()
	for {
		select {
		case <-d.quit:
			return // the next daemon finds the machine without its process
		case <-t.C:
		}
		d.mu.Lock()
		err := d.journal.append(record{Machine: end})
		if err == nil {
			d.ended(m, end)
		}
		d.mu.Unlock()
		if err == nil {
			return
		}
	}
}

// ended publishes an end that is written. The caller holds mu.
func (d *daemon) ended(m, end *machine) {
	m.Instance, m.EndWall = end.Instance, end.EndWall
	close(m.over)
	d.opts.Log.Info("ended", "instance", m.ID, "cause", m.Cause)
	d.forget()
}

// forget drops the machines of old launches. The caller holds mu.
func (d *daemon) forget() {
	oldest := d.wall().Add(-keepKeys)
	recent := func(m *machine) bool { return m.EndWall.IsZero() || m.EndWall.After(oldest) }
	d.list = slices.DeleteFunc(d.list, func(m *machine) bool {
		if gang, known := d.keys[m.Key]; known && slices.ContainsFunc(gang, recent) {
			return false // the key still returns all its machines
		}
		delete(d.keys, m.Key)
		return true
	})
}

// bill returns the machine with its end at a market time.
func (d *daemon) bill(m *machine, cause engine.Cause, at time.Time) *machine {
	if at.Before(m.Launched) {
		at = m.Launched
	}
	end := &machine{Instance: m.Instance, Wall: m.Wall, EndWall: d.wall(), PID: m.PID, Begun: m.Begun, Host: m.Host,
		Port: m.Port, LostAt: m.LostAt, Warning: m.Warning, Foreign: m.Foreign}
	end.State, end.Cause, end.Ended, end.Bill = engine.Ended, cause, at, nil
	if _, ok := d.announced(m); ok {
		end.Interrupts = m.LostAt
	}
	t := d.opened.Trace
	line, _ := t.Line(m.Offer) // the machine was rented, so its offer exists
	segments := t.Prices(line, d.since(m.Launched), d.since(at.Add(line.Offer.Billing.Minimum)), d.opened.At)
	for _, l := range market.Bill(line.Offer.Billing, segments, at, cause == engine.Interrupted) {
		end.Bill = append(end.Bill, engine.Line{Rule: l.Rule, From: l.From, To: l.To, Amount: l.Amount,
			Currency: currency(t)})
	}
	return end
}

func currency(t market.Trace) money.Currency {
	if t.Currency == "" {
		return money.USD
	}
	return t.Currency
}

func stopMetadata(gang []*machine) {
	for _, m := range gang {
		m.stopMetadata()
	}
}

// stopMetadata stops the machine's metadata service. The caller holds mu.
func (m *machine) stopMetadata() {
	if m.meta != nil {
		_ = m.meta.Close()
	}
}
