package sim

import (
	"encoding/json"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// Faults of the store and of the servers that share it.
const (
	FaultAckEarly   Fault = "answered-before-written" // the server answers before the event is durable
	FaultNoEpoch    Fault = "no-epoch"                // the store accepts writes of a replaced leader
	FaultBlindRetry Fault = "sent-again-unasked"      // a write whose answer was lost is repeated without checking whether it succeeded
	FaultActEarly   Fault = "done-before-written"     // the actions of an event run before the event is durable
	FaultTorn       Fault = "backup-without-its-end"  // a backup lacks its last event
)

// vault is a store that fails, and the servers that share it. Like the real stores, it accepts writes only from the
// newest leader. The fate of each write is random.
type vault struct {
	w      *World
	odds   float64 // that a report fails; thirty times as likely for a request or an event with actions
	epoch  int
	epochs []int             // of each log record
	asked  map[string]bool   // by key: a durable event requests the action
	keys   map[string]string // the job submitted with the key
	queue  *[]group          // groups stepped during a write, which share its transaction or follow it; nil without a write
	twin   *twin
	moment *backedUp
	each   func(core.Event, core.Outcome) // sees each durable event
}

// backedUp is the state that a backup must restore.
type backedUp struct {
	events int
	state  json.RawMessage
}

// group is one transaction.
type group struct {
	events []core.Event
	outs   []core.Outcome
}

func (g group) acts() (acts []core.Action) {
	for _, out := range g.outs {
		acts = append(acts, out.Actions...)
	}
	return acts
}

// fates lists what can happen to a write. While a write is delayed, the core continues, and the events that it takes
// meanwhile succeed or fail with the write.
var fates = []string{
	"is held up", "is held up, and fails", "is overtaken", "is cut off, and was written", "is cut off, and sent again", "is given up, and was written",
	"is given up, and was not written", "is refused", "waits for the database to restart", "finds its leader frozen", "leaves its leader frozen", "is handed over",
}

func newVault(w *World) *vault {
	v := &vault{w: w, asked: map[string]bool{}, keys: map[string]string{}}
	v.odds = []float64{0, 0.001, 0.004, 0.01}[w.rng.IntN(4)]
	w.through = v.through
	w.faults.Crash = 0 // here servers die from the fate of their writes
	return v
}

// through writes a group of events in one transaction and performs its actions.
func (v *vault) through(events ...core.Event) bool {
	w := v.w
	if !w.up {
		return false
	}
	g := group{events, make([]core.Outcome, len(events))}
	for n, e := range events {
		g.outs[n] = w.m.Step(e)
	}
	if v.queue != nil {
		w.saw("stepped while a write is under way")
		v.watch(g)
		*v.queue = append(*v.queue, g)
		return false
	}
	fate := v.draw(g)
	within := func(least, most float64) time.Duration {
		return time.Duration((least + (most-least)*w.rng.Float64()) * float64(time.Second))
	}
	dies := func(away time.Duration) { v.epoch++; w.crash(away) }
	switch fate {
	case "":
		v.watch(g)
		v.land(g)
		if len(w.log)%37 == 0 && w.chance(0.5) && w.up && uint64(len(w.log)) == w.m.Seq() {
			w.snap, _ = w.m.Snapshot()
			w.snapAt = len(w.log)
		}
		return true
	case "is held up":
		v.later(within(0.5, 60), g)
	case "waits for the database to restart":
		v.later(within(2, 30), g)
	case "is cut off, and sent again":
		v.later(within(0.1, 10), g)
	case "is cut off, and was written":
		if w.fault == FaultBlindRetry {
			v.commit(g.events[0], core.Outcome{Facts: g.outs[0].Facts}, v.epoch)
		}
		v.later(within(0.1, 10), g)
	case "is held up, and fails":
		d, before := within(0.5, 30), v.twin.clone()
		v.watch(g)
		v.queue = &[]group{}
		w.away += d
		w.after(d, func() {
			v.queue, *v.twin = nil, *before
			dies(within(1, 60))
		})
		return w.fault == FaultAckEarly
	case "is overtaken", "finds its leader frozen":
		old, epoch := w.m, v.epoch
		dies(within(1, 9))
		w.after(within(10, 300), func() { v.late(old, epoch, g) })
		return w.fault == FaultAckEarly
	case "is given up, and was written":
		v.watch(g)
		v.written(g)
		dies(within(5, 200))
	case "is given up, and was not written", "is refused":
		dies(within(5, 200))
		return w.fault == FaultAckEarly
	case "leaves its leader frozen":
		v.watch(g)
		v.written(g)
		old, epoch := w.m, v.epoch
		dies(within(1, 9))
		w.after(within(0, 120), func() { v.lateActs(g.acts()) })
		w.after(within(10, 300), func() { v.late(old, epoch, group{}) })
	case "is handed over": // it was acknowledged, and its actions are left to the next leader
		v.watch(g)
		v.written(g)
		dies(100 * time.Millisecond)
		return true
	}
	return false
}

// idle reports whether a server leads and all its events are durable. Requests other than reports wait for that.
func (v *vault) idle() bool { return v.w.up && v.queue == nil }

// watch shows a step to the twin right after it was made.
func (v *vault) watch(g group) {
	for n, e := range g.events {
		v.w.watch(e, g.outs[n])
	}
}

// written makes groups durable.
func (v *vault) written(groups ...group) {
	for _, g := range groups {
		for n, e := range g.events {
			v.commit(e, g.outs[n], v.epoch)
		}
	}
	for _, g := range groups {
		for n, e := range g.events {
			v.each(e, g.outs[n])
		}
	}
}

// land makes groups durable and performs their actions.
func (v *vault) land(groups ...group) {
	v.written(groups...)
	for _, g := range groups {
		v.act(g.acts())
	}
}

// later completes a write after its requester has stopped waiting, together with the events that the core has taken
// meanwhile.
func (v *vault) later(d time.Duration, g group) {
	v.watch(g)
	v.queue = &[]group{}
	v.w.away += d
	v.w.after(d, func() {
		all := append([]group{g}, *v.queue...)
		v.queue = nil
		v.land(all...)
	})
}

// draw returns the fate of a write, or "" if it succeeds.
func (v *vault) draw(g group) string {
	w, odds, acts := v.w, v.odds, g.acts()
	switch kind := class(g.events[0].Body); {
	case kind == "job_reviewed": // there are few
		odds *= 100
	case len(acts) > 0 || kind != "report":
		odds *= 30
	}
	if !w.chance(odds) {
		return ""
	}
	fate := fates[w.rng.IntN(len(fates))]
	for _, e := range g.events {
		w.saw("fault " + fate + " × " + class(e.Body))
	}
	for _, a := range acts {
		w.saw("fault " + fate + " × " + a.Kind())
	}
	w.tell("a write of %s %s", g.events[0].Body.Kind(), fate)
	if w.fault == FaultActEarly {
		v.act(acts)
	}
	return fate
}

// class returns the name of an event in the coverage table.
func class(b core.Body) string {
	switch b.(type) {
	case core.JobSubmitted, core.JobEnded, core.JobReviewed, core.BudgetsSet, core.IdentityChanged:
		return b.Kind()
	}
	return "report"
}

func (v *vault) commit(e core.Event, out core.Outcome, epoch int) {
	if out.Nothing {
		v.w.commit(e, out)
		return
	}
	v.epochs = append(v.epochs, epoch)
	for _, a := range out.Actions {
		v.asked[a.Key()] = true
	}
	if b, ok := e.Body.(core.JobSubmitted); ok && e.Key != "" {
		if first, twice := v.keys[e.Key]; twice {
			v.w.breaks("submitted twice: %s and %s have the key %s", first, b.Job, e.Key)
		} else {
			v.keys[e.Key] = b.Job
		}
	}
	v.w.commit(e, out)
}

// act performs the actions of durable events.
func (v *vault) act(actions []core.Action) {
	for _, a := range actions {
		v.w.saw("action " + a.Kind())
		if !v.asked[a.Key()] {
			v.w.breaks("unwritten: %s was done, and no event of the log asks for it", a.Key())
		}
		v.w.act(a)
	}
}

// lateActs makes a frozen leader perform its next actions when it thaws. It had checked its leadership before; its
// answers are lost.
func (v *vault) lateActs(actions []core.Action) {
	for _, a := range actions {
		v.w.saw("fault done late × " + a.Kind())
		v.w.tell("the old leader does %s", a.Key())
		v.w.unheard = true
		v.w.act(a)
		v.w.unheard = false
	}
}

// late makes a replaced leader write its last group, or a tick. The store refuses the write, and the leader ends.
func (v *vault) late(m *core.Machine, epoch int, g group) {
	if len(g.events) == 0 {
		e := core.Event{At: v.w.now, Schema: core.Schema, Tenant: "default", Body: core.Tick{}}
		g = group{[]core.Event{e}, []core.Outcome{m.Step(e)}}
	}
	if epoch != v.epoch && v.w.fault != FaultNoEpoch {
		v.w.saw("a late write is fenced")
		v.w.tell("the old leader is told that it is one")
		return
	}
	for n, e := range g.events {
		if e.At.Before(v.w.m.Now()) {
			e.At = v.w.m.Now()
		}
		v.commit(e, g.outs[n], epoch)
	}
}

// note records what a backup made now must restore.
func (v *vault) note() {
	if !v.w.up || uint64(len(v.w.log)) != v.w.m.Seq() {
		v.w.after(time.Minute, v.note)
		return
	}
	snap, err := v.w.m.Snapshot()
	if err != nil {
		panic(err)
	}
	v.moment = &backedUp{len(v.w.log), snap}
	v.w.saw("a backup in the middle")
}

// check verifies the log at the end of a life: its epochs never decrease, and a replay gives the same state, byte for
// byte, at the time of the backup and at the end.
func (v *vault) check() {
	w := v.w
	for n := 1; n < len(v.epochs); n++ {
		if v.epochs[n] < v.epochs[n-1] {
			w.breaks("fence: event %d was written by leader %d, after leader %d had begun", n+1, v.epochs[n], v.epochs[n-1])
		}
	}
	if w.up && uint64(len(w.log)) != w.m.Seq() {
		w.breaks("replay: the log has %d events, the leader took %d", len(w.log), w.m.Seq())
		return
	}
	st := state.New()
	same := func(what string, want json.RawMessage) {
		got, err := st.Snapshot()
		if err != nil {
			panic(err)
		}
		if string(got) != string(want) {
			w.breaks("%s: the log gives another state than the one that was", what)
		}
	}
	postings := 0
	for n := range w.log {
		if v.moment != nil && n == v.moment.events-1 && w.fault == FaultTorn {
			same("backup", v.moment.state)
		}
		l := &w.log[n]
		r, err := l.back()
		if err != nil {
			w.breaks("replay: %v", err)
			return
		}
		st.Replay(uint64(n+1), r.event, r.facts, l.postings)
		for _, p := range l.postings {
			if postings < len(w.postings) && p.Hash != w.postings[postings].Hash {
				w.breaks("replay: posting %d is another", postings)
				return
			}
			postings++
		}
		if v.moment != nil && n == v.moment.events-1 && w.fault != FaultTorn {
			same("backup", v.moment.state)
		}
	}
	last, err := w.m.Snapshot()
	if err != nil {
		panic(err)
	}
	same("replay", last)
	if postings != len(w.postings) {
		w.breaks("replay: it gives %d postings, there were %d", postings, len(w.postings))
	}
}
