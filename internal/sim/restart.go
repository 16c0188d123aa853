package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// logged is one durable entry of the world's log, which a restart reads.
type logged struct {
	event    json.RawMessage
	facts    json.RawMessage
	postings []ledger.Posting
	sample   bool
	read     *readBack // set by the first restart
}

// readBack is a decoded log entry.
type readBack struct {
	event core.Event
	facts []core.Fact
}

// back decodes the entry. It caches the result, because a later restart reads the same bytes.
func (l *logged) back() (*readBack, error) {
	if l.read == nil {
		var r readBack
		if err := json.Unmarshal(l.event, &r.event); err != nil {
			return nil, fmt.Errorf("read event: %w", err)
		}
		var err error
		if r.facts, err = state.DecodeFacts(l.facts); err != nil {
			return nil, err
		}
		l.read = &r
	}
	return l.read, nil
}

// crash kills the server. After the given time, the server restarts from its durable log.
func (w *World) crash(away time.Duration) {
	before, err := w.m.Snapshot()
	if err != nil {
		panic(err)
	}
	durable := !w.keeps || uint64(len(w.log)) == w.m.Seq()
	w.up = false
	w.lives++
	w.tell("server dies")
	w.away += away
	if w.script != nil {
		w.script.dies = ""
		away = max(away, w.script.away)
	}
	w.after(away, func() { w.restart(before, durable) })
}

// replayed returns the state of the log, read from a snapshot or from its beginning.
func (w *World) replayed(from int, snap json.RawMessage) (s *state.State, err error) {
	defer func() {
		if why := recover(); why != nil { // inconsistent facts panic
			err = fmt.Errorf("%v", why)
		}
	}()
	s = state.New()
	if snap != nil {
		if s, err = state.Restore(snap); err != nil {
			return nil, err
		}
	}
	for n := range w.log[from:] {
		l := &w.log[from+n]
		r, err := l.back()
		if err != nil {
			return nil, err
		}
		facts := r.facts
		if w.fault == FaultLostFact && len(facts) > 1 {
			facts = facts[1:]
		}
		s.Replay(uint64(from+n+1), r.event, facts, l.postings)
	}
	return s, nil
}

// restart rebuilds the machine from the snapshot and the rest of the log, and repeats the requests that have no answer
// yet.
func (w *World) restart(before json.RawMessage, durable bool) {
	from, snap := 0, json.RawMessage(nil)
	if w.snap != nil && w.chance(0.5) {
		from, snap = w.snapAt, w.snap
	}
	s, err := w.replayed(from, snap)
	if err != nil {
		w.breaks("replay: %v", err)
		return
	}
	again, err := s.Snapshot()
	if err != nil {
		panic(err)
	}
	if durable && !bytes.Equal(before, again) {
		w.breaks("replay: a restart gives another state than the one that was lost")
	}
	w.m, w.up, w.tick = core.On(s, w.mind), true, time.Time{}
	w.breaksCore()
	w.tell("server is back after %d events", len(w.log))
	w.schedule(w.now)
	if w.up && w.later(w.faults.Copied) && w.m.State().Incarnation() > 0 { // otherwise its first event was lost
		w.copied()
	}
	if w.up && w.cfg != nil {
		w.step(core.Configured{Config: *w.cfg})
	}
	if w.up && w.fault != FaultNoRedo {
		for _, a := range w.m.Pending() {
			w.act(a)
		}
	}
	w.sweep()
	w.quotes()
}

// breaksCore sets the faults of the core's own rules.
func (w *World) breaksCore() {
	f := core.Faults{
		TwoKeys: w.fault == FaultTwoKeys, Unclean: w.fault == FaultUnclean, Anyone: w.fault == FaultAnyone,
		Images: w.fault == FaultAnyImage,
		Waits:  w.fault == FaultWaits, Crowds: w.fault == FaultCrowds, Early: w.fault == FaultEarly,
		Stale: w.fault == FaultStaleGroup, Unpins: w.fault == FaultUnpinned, Seizes: w.fault == FaultTwoDeciders,
		Crowded: w.fault == FaultCrowded, Lumps: w.fault == FaultLumps, Heedless: w.fault == FaultHeedless,
		Endless: w.fault == FaultEndless, Beyond: w.fault == FaultBeyond,
		Unreserved: w.fault == FaultUnreserved,
		Unready:    w.fault == FaultUnready, Doubled: w.fault == FaultDoubled,
		Overlaps: w.fault == FaultOverlaps, Hasty: w.fault == FaultHasty, Costly: w.fault == FaultCostly,
		Rivals: w.fault == FaultRivals, Unkept: w.fault == FaultUnkept, Hoards: w.fault == FaultHoards,
	}
	if w.fault == FaultFullHold {
		f.LetsIn = func(no *core.Refusal) bool { return no.Why == core.GroupFull }
	}
	w.m.Break(f)
}

// copied tells the server that its log was restored. The running machines have no owner until a user decides.
func (w *World) copied() {
	w.saw("a restored copy")
	w.undecided = map[string]bool{}
	for _, i := range w.m.State().Instances() {
		w.undecided[i.ID()] = i.Live() && !i.Machine().Prepaid
	}
	if w.fault == FaultNoOwner {
		return
	}
	if !w.step(core.IncarnationBegun{Installation: "sim", Incarnation: w.m.State().Incarnation() + 1}) {
		w.undecided = nil
		return
	}
	w.decides(w.later(0.5))
}

// decides settles, some time later, who owns the running machines.
func (w *World) decides(adopt bool) {
	d := time.Duration(1+w.extra.IntN(60)) * time.Minute
	w.away += d
	w.after(d, func() {
		disowned := map[string]bool{}
		for _, i := range w.m.State().Instances() {
			disowned[i.ID()] = i.Disowned()
		}
		before := w.undecided
		w.undecided = nil
		if !w.step(core.OwnershipDecided{Adopt: adopt}) {
			w.undecided = before
			w.decides(adopt)
			return
		}
		if adopt {
			return
		}
		for _, i := range w.open {
			if i.running() && disowned[i.id] { // from now on it belongs to another server
				i.until, i.cause, i.told, i.billed = w.now.Add(w.skew), "released", true, true
				if i.until.Before(w.m.Now()) {
					i.until = w.m.Now()
				}
				i.bill = []core.BillLine{{Amount: market.Cost(i.segments, i.until), Currency: money.USD}}
				i.kills()
			}
		}
	})
}

// sweep shows the core the running machines if the list holds news, as the shell does, for each provider separately.
func (w *World) sweep() {
	if len(w.sellers) == 0 {
		w.sweepOf(nil)
	}
	for _, s := range w.sellers {
		w.sweepOf(s)
	}
}

// sweepOf shows the core the running machines of a provider; nil stands for the only one.
func (w *World) sweepOf(s *seller) {
	if w.fault == FaultNoSweep || s != nil && w.now.Before(s.away) {
		return
	}
	w.reportEnds()
	b, shown, news := w.inventory(s)
	news = news || w.missing(b.Provider, shown)
	for _, other := range w.sellers {
		if w.fault == FaultOneSweep && other != s {
			w.step(core.InventorySeen{Provider: other.name, AsOf: w.now, Running: b.Running})
		}
	}
	if !news {
		return
	}
	if w.through != nil && w.chance(w.faults.Late) { // the list is old when it arrives
		w.saw("fault late × inventory")
		w.after(w.delay(1, 60), func() { w.step(b) })
		return
	}
	w.step(b)
}

// reportEnds drops the machines whose end and whole bill the core has, and reports the ends for which it waits.
func (w *World) reportEnds() {
	w.open = slices.DeleteFunc(w.open, func(i *instance) bool { return i.told && i.billed == i.billing })
	for _, i := range w.open {
		if !i.running() && w.up && w.m.Awaits(i.id) {
			w.endTold(i)
		}
	}
}

// missing reports whether a live task of the core has a machine at the provider that its list does not show.
func (w *World) missing(provider string, shown map[string]bool) bool {
	for _, a := range w.m.Live() {
		if a.Provider() != provider {
			continue
		}
		for _, k := range a.Tasks() {
			if k.Live() && !shown[k.Instance()] {
				return true
			}
		}
	}
	return false
}

// inventory returns a provider's list, also by instance, and whether the core does not know some of it.
func (w *World) inventory(s *seller) (b core.InventorySeen, shown map[string]bool, news bool) {
	b, shown = core.InventorySeen{Provider: w.provider(), AsOf: w.now}, map[string]bool{}
	if s != nil {
		b.Provider = s.name
	}
	for _, i := range w.open {
		r := core.Rented{Instance: i.id, Launch: i.key, Offer: i.offer.ID, Rate: i.segments[0].Rate, From: i.from}
		if s != nil && i.offer.Provider != s.name || !i.running() && (!w.up || !w.m.Unheard(r)) {
			continue
		}
		if w.unlisted(i) {
			if i.omitted == nil {
				i.omitted = map[time.Time]bool{}
			}
			i.omitted[b.AsOf] = true
			continue
		}
		if w.fault == FaultBilledTwice && w.m.Awaits(i.id) && !w.m.Knows(i.id) {
			r.Instance += "-again"
		}
		shown[i.id] = true
		news = news || !w.m.Knows(r.Instance)
		b.Running = append(b.Running, r)
	}
	return b, shown, news
}
