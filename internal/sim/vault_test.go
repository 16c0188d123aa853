package sim

import (
	"encoding/json"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// The faults that can be planted in the store and in the servers that share it.
const (
	FaultAckEarly   Fault = "answered-before-written" // who asks is told that it is done before it is durable
	FaultNoEpoch    Fault = "no-epoch"                // the store takes writes of a leader that was replaced
	FaultBlindRetry Fault = "sent-again-unasked"      // a write whose answer was lost is sent again, and nobody asks whether it came through
	FaultActEarly   Fault = "done-before-written"     // what an event leads to is done before the event is durable
	FaultTorn       Fault = "backup-without-its-end"  // a backup lacks the last event of its moment
)

// vault is a store that fails, and the servers that share it. It takes writes of
// the newest leader only, as the stores do; what becomes of a write is drawn.
type vault struct {
	w      *World
	odds   float64 // that something befalls a report; thirty times as likely where somebody asks or something is to be done
	epoch  int
	epochs []int             // of each record of the log
	asked  map[string]bool   // by key: a durable event asks for the action
	keys   map[string]string // the job that was submitted with the key
	queue  *[]group          // stepped while a write is under way, in whose transaction or after it they come; nil: none is
	twin   *twin
	moment *backedUp
	each   func(core.Event, core.Outcome) // is shown what is durable
}

// backedUp is what a backup of that moment has to restore to.
type backedUp struct {
	events int
	state  json.RawMessage
}

// group is what is written in one transaction.
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

// fates are what can befall a write. While one is held up the core goes on, and
// what it takes meanwhile comes through with it, or is lost with it.
var fates = []string{
	"is held up", "is held up, and fails", "is overtaken", "is cut off, and was written", "is cut off, and sent again", "is given up, and was written",
	"is given up, and was not written", "is refused", "waits for the database to restart", "finds its leader frozen", "leaves its leader frozen", "is handed over",
}

func newVault(w *World) *vault {
	v := &vault{w: w, asked: map[string]bool{}, keys: map[string]string{}}
	v.odds = []float64{0, 0.001, 0.004, 0.01}[w.rng.IntN(4)]
	w.through = v.through
	w.faults.Crash = 0 // here servers die of what befalls their writes
	return v
}

// through writes a group of events in one transaction and does what they lead to.
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
	case "is handed over": // it was answered, and what is to be done is left to the next
		v.watch(g)
		v.written(g)
		dies(100 * time.Millisecond)
		return true
	}
	return false
}

// idle reports whether a server leads and all that it was told is durable: who
// asks for more than a report waits for that.
func (v *vault) idle() bool { return v.w.up && v.queue == nil }

// watch shows a step to the twin, right after it was made.
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

// land makes groups durable and does what they lead to.
func (v *vault) land(groups ...group) {
	v.written(groups...)
	for _, g := range groups {
		v.act(g.acts())
	}
}

// later lets a write come through when nobody waits for it any more, and with it
// what the core has taken meanwhile.
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

// draw says what befalls a write; "": nothing.
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

// class is what a coverage table calls an event.
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

// act does what durable events ask for.
func (v *vault) act(actions []core.Action) {
	for _, a := range actions {
		v.w.saw("action " + a.Kind())
		if !v.asked[a.Key()] {
			v.w.breaks("unwritten: %s was done, and no event of the log asks for it", a.Key())
		}
		v.w.act(a)
	}
}

// lateActs lets a leader that was frozen do, when it thaws, what it was about to
// do. It had asked whether it leads before; nobody hears its answers.
func (v *vault) lateActs(actions []core.Action) {
	for _, a := range actions {
		v.w.saw("fault done late × " + a.Kind())
		v.w.tell("the old leader does %s", a.Key())
		v.w.unheard = true
		v.w.act(a)
		v.w.unheard = false
	}
}

// late lets a leader that was replaced write, what it had in hand or that time
// passed. The store does not take it, and the leader ends.
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

// note notes what a backup of now would have to restore to.
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

// check holds what a log must be at the end of a life: of one leader after the
// other, and replayed it gives the same state, byte for byte, at the moment of
// the backup and at the end.
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
