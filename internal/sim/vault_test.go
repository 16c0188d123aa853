package sim

import (
	"encoding/json"
	"time"

	"scrimp/internal/core"
)

// The faults that can be planted in the store and in the servers that share it.
const (
	PlantAckEarly   Plant = "answered-before-written" // who asks is told that it is done before it is durable
	PlantNoEpoch    Plant = "no-epoch"                // the store takes writes of a leader that was replaced
	PlantBlindRetry Plant = "sent-again-unasked"      // a write whose answer was lost is sent again, and nobody asks whether it came through
	PlantActEarly   Plant = "done-before-written"     // what an event leads to is done before the event is durable
	PlantTorn       Plant = "backup-without-its-end"  // a backup lacks the last event of its moment
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
	moment *backedUp
	each   func(core.Event, core.Outcome) // is shown what is durable
	disk   func([]core.Event, []core.Outcome)
}

// backedUp is what a backup of that moment has to restore to.
type backedUp struct {
	events int
	state  json.RawMessage
}

// fates are what can befall a write. Those that come after "frozen before it acts" end no leader.
var fates = []string{
	"is held up", "is overtaken", "is cut off, and was written", "is cut off, and sent again", "is given up, and was written",
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
	outs := make([]core.Outcome, len(events))
	var acts []core.Action
	for n, e := range events {
		outs[n] = w.m.Step(e)
		acts = append(acts, outs[n].Actions...)
	}
	land := func() {
		for n, e := range events {
			if w.watch != nil {
				w.watch(e, outs[n])
			}
			v.commit(e, outs[n], v.epoch)
		}
		if v.disk != nil {
			v.disk(events, outs)
		}
	}
	fate := v.draw(len(acts) > 0 || class(events[0].Body) != "report")
	if fate != "" {
		w.saw("fault " + fate)
		for _, e := range events {
			w.saw("fault " + fate + " × " + class(e.Body))
		}
		for _, a := range acts {
			w.saw("fault " + fate + " × " + a.Kind())
		}
		w.tell("a write of %s %s", events[0].Body.Kind(), fate)
		if w.plant == PlantActEarly {
			v.act(acts)
		}
	}
	within := func(least, most float64) time.Duration {
		return time.Duration((least + (most-least)*w.rng.Float64()) * float64(time.Second))
	}
	takeover := func() { v.epoch++; w.crash(within(1, 9)) }
	later := func(d time.Duration) { // it comes through when nobody waits for it any more
		w.up = false
		w.away += d
		w.after(d, func() { w.up = true; land(); v.act(acts) })
	}
	switch fate {
	case "":
		land()
		v.act(acts)
		if len(w.log)%37 == 0 && w.chance(0.5) {
			w.snap, _ = w.m.Snapshot()
			w.snapAt = len(w.log)
		}
		return true
	case "is held up":
		later(within(0.5, 60))
	case "waits for the database to restart":
		later(within(2, 30))
	case "is cut off, and sent again":
		later(within(0.1, 10))
	case "is cut off, and was written":
		if w.plant == PlantBlindRetry {
			v.commit(events[0], core.Outcome{Decisions: outs[0].Decisions}, v.epoch)
		}
		later(within(0.1, 10))
	case "is overtaken", "finds its leader frozen":
		old, epoch := w.m, v.epoch
		takeover()
		w.after(within(10, 300), func() { v.late(old, epoch, events, outs) })
		return w.plant == PlantAckEarly
	case "is given up, and was written":
		land()
		v.epoch++
		w.crash(within(5, 200))
	case "is given up, and was not written", "is refused":
		v.epoch++
		w.crash(within(5, 200))
		return w.plant == PlantAckEarly
	case "leaves its leader frozen":
		land()
		old, epoch := w.m, v.epoch
		takeover()
		w.after(within(0, 120), func() { v.lateActs(acts) })
		w.after(within(10, 300), func() { v.late(old, epoch, nil, nil) })
	case "is handed over": // it was answered, and what is to be done is left to the next
		land()
		v.epoch++
		w.crash(100 * time.Millisecond)
		return true
	}
	return false
}

// draw says what befalls a write; "": nothing.
func (v *vault) draw(matters bool) string {
	odds := v.odds
	if matters {
		odds *= 30
	}
	if !v.w.chance(odds) {
		return ""
	}
	return fates[v.w.rng.IntN(len(fates))]
}

// class is what a coverage table calls an event.
func class(b core.Body) string {
	switch b.(type) {
	case core.JobSubmitted, core.JobEnded, core.BudgetsSet, core.IdentityChanged:
		return b.Kind()
	}
	return "report"
}

func (v *vault) commit(e core.Event, out core.Outcome, epoch int) {
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
	if v.each != nil {
		v.each(e, out)
	}
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
func (v *vault) late(m *core.Machine, epoch int, events []core.Event, outs []core.Outcome) {
	if len(events) == 0 {
		e := core.Event{At: v.w.now, Schema: core.Schema, Tenant: "default", Body: core.Tick{}}
		events, outs = []core.Event{e}, []core.Outcome{m.Step(e)}
	}
	if epoch != v.epoch && v.w.plant != PlantNoEpoch {
		v.w.saw("a late write is fenced")
		v.w.tell("the old leader is told that it is one")
		return
	}
	for n, e := range events {
		if e.At.Before(v.w.m.Now()) {
			e.At = v.w.m.Now()
		}
		v.commit(e, outs[n], epoch)
	}
}

// note notes what a backup of now would have to restore to.
func (v *vault) note() {
	if !v.w.up || uint64(len(v.w.log)) != v.w.m.Seq() {
		v.w.after(time.Minute, v.note)
		return
	}
	state, err := v.w.m.Snapshot()
	if err != nil {
		panic(err)
	}
	v.moment = &backedUp{len(v.w.log), state}
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
	m := core.New()
	m.Share(w.mind)
	same := func(what string, want json.RawMessage) {
		got, err := m.Snapshot()
		if err != nil {
			panic(err)
		}
		if string(got) != string(want) {
			w.breaks("%s: the log gives another state than the one that was", what)
		}
	}
	postings := 0
	for n := range w.log {
		if v.moment != nil && n == v.moment.events-1 && w.plant == PlantTorn {
			same("backup", v.moment.state)
		}
		r, err := w.log[n].back()
		if err != nil {
			w.breaks("replay: %v", err)
			return
		}
		for _, p := range m.Replay(r.event, r.decisions).Postings {
			if postings < len(w.postings) && p.Hash != w.postings[postings].Hash {
				w.breaks("replay: posting %d is another", postings)
				return
			}
			postings++
		}
		if v.moment != nil && n == v.moment.events-1 && w.plant != PlantTorn {
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
