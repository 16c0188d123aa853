package receipts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/store"
	"scrimp/internal/wire/api"
)

// Verify replays the whole log and compares it with the ledger and the state.
func (b *Service) Verify(w http.ResponseWriter, r *http.Request) {
	v := api.Verified{OK: true, Currency: "USD"}
	if err := b.verify(r.Context(), &v); err != nil {
		v.OK, v.Problem = false, err.Error()
	}
	reply.JSON(w, v)
}

// verify proves the ledger from the log: only samples are missing; each posting is as it was sealed; the charges of
// a machine are its time at the logged prices; the postings of each attempt and job equal the amounts in the state;
// and the log leads to the state that the server works with.
func (b *Service) verify(ctx context.Context, v *api.Verified) error {
	var end uint64
	var head ledger.Hash
	b.Control.Read(func(m *core.Machine) { end, head = m.Seq(), m.Head(b.Control.Tenant()) })
	p := &proof{s: state.New(), spent: map[string]money.Amount{}, archived: map[string]archivedProof{},
		groups: map[string]ledger.Hash{}}
	heads, err := ledger.Heads(func(yield func(ledger.Posting, error) bool) {
		b.replay(ctx, p, end, yield)
	})
	v.Events, v.Postings, v.Head = p.s.Seq(), p.postings, client.Hash(p.s.Head(b.Control.Tenant()))
	switch {
	case err != nil:
		return err
	case p.s.Seq() != end:
		return fmt.Errorf("the log ends at event %d, and the state is that of event %d", p.s.Seq(), end)
	case heads[b.Control.Tenant()] != head:
		return errors.New("the last posting differs from the state: postings are missing or were added")
	}
	v.Idle, v.Cost, v.Jobs = p.idle, p.idle.Add(p.cost), len(p.archived)
	for _, j := range p.s.Jobs() {
		v.Jobs++
		for _, a := range j.Attempts() {
			v.Cost = v.Cost.Add(p.spent[a.ID()])
		}
		if err := p.sums(j); err != nil {
			return err
		}
	}
	if err := b.same(p, end); err != nil {
		return err
	}
	return b.sameArchive(p, end)
}

// sameArchive compares the archived jobs of the log with those of the server, unless a job was archived since.
func (b *Service) sameArchive(p *proof, end uint64) (err error) {
	b.Control.ReadUncommitted(func(m *core.Machine) {
		jobs, sum := p.s.ArchivedJobs()
		if n, has := m.State().ArchivedJobs(); m.ArchivedAt() <= end && (n != jobs || has != sum) {
			err = fmt.Errorf("the log archives %d jobs with sum %x, and the server has %d with %x: restart the server, which "+
				"rebuilds its state from the log", jobs, sum, n, has)
		}
	})
	return err
}

// replay reads the log up to an event and yields its postings on the way.
func (b *Service) replay(ctx context.Context, p *proof, end uint64, yield func(ledger.Posting, error) bool) {
	var chain store.Chain
	chain.Dropped = end
	for after := uint64(0); after < end; {
		records, err := b.Log.WholeRecords(ctx, after, 500)
		if err == nil && len(records) == 0 {
			return
		}
		for _, r := range records {
			if after = r.Seq; r.Seq > end {
				return
			}
			if err = chain.Add(r); err == nil {
				err = p.add(r)
			}
			if err != nil {
				break
			}
			for _, posting := range r.Postings {
				if !yield(posting, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(ledger.Posting{}, err)
			return
		}
	}
}

// proof is a replay of the log with counters.
type proof struct {
	s        *state.State
	postings int
	holes    bool                    // samples are missing, so what was learned from them is unknown
	spent    map[string]money.Amount // by attempt
	idle     money.Amount            // cost of machines between jobs
	archived map[string]archivedProof
	cost     money.Amount           // of archived jobs
	groups   map[string]ledger.Hash // records of archived groups
}

// archivedProof holds the values of an archived job, for the check at its rehydration.
type archivedProof struct {
	record ledger.Hash
	cost   money.Amount
	spent  map[string]money.Amount // by attempt
}

// archives checks a job against its postings and the record with which the log archives it.
func (p *proof) archives(f state.JobArchived) error {
	j := p.s.Job(f.Job)
	if j == nil {
		return fmt.Errorf("job %s is archived, and the log has none", f.Job)
	}
	kept, err := state.ReadJob(f.Record)
	if err != nil {
		return err
	}
	if !j.Same(kept, !p.holes) {
		return fmt.Errorf("the record of archived job %s differs from the log", f.Job)
	}
	if err := p.sums(j); err != nil {
		return err
	}
	a := archivedProof{record: state.RecordHash(f.Record), spent: map[string]money.Amount{}}
	for _, t := range j.Attempts() {
		a.cost, a.spent[t.ID()] = a.cost.Add(p.spent[t.ID()]), p.spent[t.ID()]
		delete(p.spent, t.ID())
	}
	p.archived[f.Job], p.cost = a, p.cost.Add(a.cost)
	return nil
}

// rehydrates checks that a job comes back with the record with which it was archived.
func (p *proof) rehydrates(b state.Rehydrated) error {
	a, archived := p.archived[b.Job]
	if !archived || a.record != state.RecordHash(b.Record) {
		return fmt.Errorf("job %s is rehydrated from another record than it was archived with", b.Job)
	}
	for attempt, spent := range a.spent {
		p.spent[attempt] = spent
	}
	delete(p.archived, b.Job)
	p.cost = p.cost.Sub(a.cost)
	return nil
}

// moveGroup notes the record with which the log archives a group, and checks that the group comes back with it.
func (p *proof) moveGroup(e core.Event, f core.Fact) error {
	switch f := f.(type) {
	case state.GroupArchived:
		g, err := state.ReadGroup(f.Record)
		if err != nil {
			return err
		}
		if live := p.s.Group(f.Group); live == nil || g.Name != f.Group || g.Phase != live.Phase ||
			g.Ended != live.Ended || g.Event != live.Event {
			return fmt.Errorf("the record of archived group %s differs from the log", f.Group)
		}
		p.groups[f.Group] = state.RecordHash(f.Record)
	case state.GroupRehydrated:
		b, ok := e.Body.(state.RehydratedGroup)
		if hash, archived := p.groups[f.Group]; !ok || !archived || hash != state.RecordHash(b.Record) {
			return fmt.Errorf("group %s is rehydrated from another record than it was archived with", f.Group)
		}
		delete(p.groups, f.Group)
	}
	return nil
}

// moves removes the jobs and groups that an event archives from the proof, and adds those that it rehydrates.
func (p *proof) moves(e core.Event, facts []core.Fact) error {
	for _, f := range facts {
		switch f := f.(type) {
		case state.JobArchived:
			if err := p.archives(f); err != nil {
				return err
			}
		case state.JobRehydrated:
			if b, ok := e.Body.(state.Rehydrated); ok {
				if err := p.rehydrates(b); err != nil {
					return err
				}
			}
		default:
			if err := p.moveGroup(e, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// add applies the next record. If a fact violates the state machines, the log was changed and add returns an error.
func (p *proof) add(r store.Record) (err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("event %d does not follow from those before it: %v", r.Seq, wrong)
		}
	}()
	e, facts, err := replay.Decode(r)
	if err != nil {
		return err
	}
	if r.Seq != p.s.Seq()+1 {
		p.holes = true
	}
	due, whole := p.charged(e, facts)
	if err := p.moves(e, facts); err != nil {
		return fmt.Errorf("event %d: %w", r.Seq, err)
	}
	p.s.Replay(r.Seq, e, facts, r.Postings)
	for _, posting := range r.Postings {
		p.postings++
		p.spent[posting.Owner.Attempt] = p.spent[posting.Owner.Attempt].Add(core.Cost(posting))
		if posting.Idles() {
			p.idle = p.idle.Add(core.Cost(posting))
		}
	}
	for k, cost := range due {
		if posted := k.Posted(); posted != cost {
			return fmt.Errorf("event %d: %s was charged %v, but its time at the logged prices costs %v", r.Seq, k.Name(),
				posted, cost)
		}
	}
	for i, cost := range whole {
		if i.Posted() != cost {
			return fmt.Errorf("event %d: all that %s did was charged %v, but its time at the logged prices costs %v", r.Seq,
				i.ID(), i.Posted(), cost)
		}
	}
	return nil
}

// charged computes, from the prices in the log, the cost of the tasks that leave their machines by these facts, and
// the whole cost of shared machines that end. If samples are missing, the log lacks some prices and charged returns
// nothing.
func (p *proof) charged(e core.Event, facts []core.Fact) (due map[*core.Task]money.Amount,
	whole map[*state.Instance]money.Amount,
) {
	due, whole = map[*core.Task]money.Amount{}, map[*state.Instance]money.Amount{}
	if p.holes {
		return due, whole
	}
	for _, f := range facts {
		instance, attempt, until := "", "", e.At
		switch f := f.(type) {
		case state.InstanceClosed:
			instance, until = f.Instance, f.Until
		case state.SeatLeft:
			instance, attempt = f.Instance, f.Attempt
		}
		i := p.s.Instance(instance)
		if i == nil {
			continue
		}
		if _, ends := f.(state.InstanceClosed); ends && i.Shared() && !until.Before(p.lastSeatChange(i)) {
			whole[i] = i.Cost(until)
		}
		for _, k := range p.s.TasksOn(i) {
			if !until.Before(k.From()) && (attempt == "" || k.Attempt().ID() == attempt) {
				due[k] = k.Cost(until)
			}
		}
	}
	return due, whole
}

// lastSeatChange returns the last time a task came to the machine or left it. It ignores a task that took the
// machine out of its idle time, because that idle time is reversed. If the provider reports an end before that time,
// the tasks charged until then have paid for the rest already, and the provider's bill corrects it.
func (p *proof) lastSeatChange(i *state.Instance) (last time.Time) {
	take := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, k := range p.s.TasksOn(i) {
		took := func(x state.Idle) bool { return x.Taken == k.Attempt().ID() }
		if !slices.ContainsFunc(i.Idles(), took) {
			take(k.From())
		}
	}
	for _, id := range i.Served() {
		if a := p.s.AttemptOf(id); a != nil && a.On(i.ID()) != nil {
			take(a.On(i.ID()).Until())
		}
	}
	return last
}

// sums checks a job's amounts in the state against the sums of its postings.
func (p *proof) sums(j *core.Job) error {
	booked := j.Settled()
	for _, a := range j.Open() {
		booked = booked.Add(a.Posted()).Add(a.Rules())
	}
	posted := money.Amount{}
	for _, a := range j.Attempts() {
		posted = posted.Add(p.spent[a.ID()])
		if has := a.Posted().Add(a.Rules()); has != p.spent[a.ID()] {
			return fmt.Errorf("the postings of %s come to %v, and the state has %v", a.ID(), p.spent[a.ID()], has)
		}
		uses := money.Amount{}
		for _, u := range a.Uses() {
			uses = uses.Add(u)
		}
		if uses != p.spent[a.ID()] {
			return fmt.Errorf("the uses of %s come to %v, and its postings to %v", a.ID(), uses, p.spent[a.ID()])
		}
	}
	if booked != posted {
		return fmt.Errorf("the postings of %s come to %v, and the state has %v", j.ID(), posted, booked)
	}
	return nil
}

// samePiece is the number of jobs compared at once; the core cannot step meanwhile.
const samePiece = 500

// same compares the state that the log led to at an event with the server's own, for jobs that have not changed
// since.
func (b *Service) same(p *proof, end uint64) error {
	jobs := p.s.Jobs()
	for from := 0; from < len(jobs); from += samePiece {
		var err error
		b.Control.ReadUncommitted(func(m *core.Machine) {
			for _, j := range jobs[from:min(from+samePiece, len(jobs))] {
				live, ok := m.Job(j.ID())
				switch {
				case !ok && m.ArchivedAt() > end: // this job, or another one, was archived since
				case !ok:
					err = fmt.Errorf("the log has job %s, and the server does not know it", j.ID())
				case live.ChangedAt() > end:
				case !j.Same(live, !p.holes):
					err = fmt.Errorf("job %s differs from the log: restart the server, which rebuilds its state from the log", j.ID())
				}
				if err != nil {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
