package state

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Observe records what an event shows about programs and markets (progress, pace, checkpoints, prices, spot losses)
// before anything is decided about it. It computes with observations and applies no rule. Events that do nothing
// else are samples, which the log keeps only for a while. Observe reports whether the event is news: an agent's
// message counts once, and not after a later one.
func (s *State) Observe(e *Event) (news bool) {
	switch b := e.Body.(type) {
	case MarketSeen:
		s.seesMarket(b)
	case LaunchDone:
		s.seesGrant(b.Launch, true)
	case InventorySeen:
		for _, r := range b.Running {
			s.seesGrant(r.Launch, true)
		}
	case LaunchRefused:
		if b.Reason == "no_capacity" {
			s.seesGrant(b.Launch, false)
		}
	case AttemptStarted, Progressed, CheckpointSaved, CheckpointFailed, CheckpointRefused, NoticeGiven, UsageSeen,
		AttemptEnded:
		return s.hears(b)
	}
	return true
}

// heardFrom returns the attempt, the rank and the number of an agent's message.
func heardFrom(b Body) (attempt string, node int, message int64) {
	switch b := b.(type) {
	case AttemptStarted:
		return b.Attempt, b.Node, b.Message
	case Progressed:
		return b.Attempt, 0, b.Message
	case CheckpointSaved:
		return b.Attempt, 0, b.Message
	case CheckpointFailed:
		return b.Attempt, b.Node, b.Message
	case CheckpointRefused:
		return b.Attempt, 0, b.Message
	case NoticeGiven:
		return b.Attempt, b.Node, b.Message
	case UsageSeen:
		return b.Attempt, b.Node, b.Message
	case AttemptEnded:
		return b.Attempt, b.Node, b.Message
	}
	return "", 0, 0
}

// hears records an agent's message. Message 0 does not come from an agent and is always news.
func (s *State) hears(b Body) bool {
	attempt, node, message := heardFrom(b)
	a := s.attempts[attempt]
	if a == nil {
		return false
	}
	t := a.Rank(node)
	if t == nil || !t.Live() || message != 0 && message <= t.r.Learned.Heard {
		return false
	}
	j := s.touched(a.r.Job)
	l := &t.r.Learned
	l.Heard = max(l.Heard, message)
	switch b := b.(type) {
	case AttemptStarted:
		s.seesStart(j, t, b)
	case Progressed:
		s.seesProgress(j, a, b)
	case CheckpointSaved:
		s.seesSave(j, a, b)
	case CheckpointFailed:
		j.runs().Learned.SaveTrouble = b.Why
	case UsageSeen:
		s.seesUsage(t, b)
	case AttemptEnded:
		s.seesProgramEnd(j, a, t, b)
	}
	return true
}

// seesStart measures the time of a restart. From here on the step in the restored checkpoint counts, not the last
// reported one.
func (s *State) seesStart(j *Job, k *Task, b AttemptStarted) {
	if p := k.r.Phase; p != Assigned && p != Starting {
		return
	}
	a, l, t := k.attempt, &j.runs().Learned, &k.r.Learned
	t.First, t.Step = b.Step, b.Step
	if k.r.Rank == 0 {
		l.SavedStep = b.Step
		if b.Restored == "" {
			l.SavedStep = 0
		}
	}
	if j.r.Terms.IdleLimit > 0 {
		t.IdleFrom = s.now
	}
	for _, other := range a.tasks { // the gang starts with its last rank
		if other != k && other.r.Started.IsZero() {
			return
		}
	}
	restart := max(0, s.now.Sub(a.r.Requested)-a.r.Transfer)
	switch {
	case a.Warm(): // no machine was rented, so this says nothing about a move
	case l.Restart == 0:
		l.Restart = max(restart, time.Nanosecond)
	default:
		l.Restart = (2*l.Restart + restart) / 3
	}
}

func (s *State) seesProgress(j *Job, a *Attempt, b Progressed) {
	if a.tasks[0].r.Phase != TaskRunning {
		return
	}
	r, t := j.runs(), &a.tasks[0].r.Learned
	l := &r.Learned
	if b.Step > t.Step {
		t.Step = b.Step
		l.Failures, l.SetUp = 0, setUps{}
	}
	l.Step = t.Step
	l.EpochSeen = max(l.EpochSeen, b.Epoch)
	if j.r.Terms.Steps == 0 && (b.Total > 0 || b.Anew) {
		l.Total = b.Total
	}
	l.Anew = l.Anew || b.Anew
	if len(b.Metrics) > 0 {
		l.Metrics = b.Metrics
	}
	s.seesPace(j, a)
	l.Seen, _ = l.Seen.Judge(j.r.Terms.Metric, b.Objective(j.r.Terms.Metric))
	s.seesTrial(j, b)
}

func (s *State) seesSave(j *Job, a *Attempt, b CheckpointSaved) {
	if a.tasks[0].r.Started.IsZero() {
		return
	}
	l, t := &j.runs().Learned, &a.tasks[0].r.Learned
	captured := b.Captured
	if captured.After(s.now) {
		captured = s.now
	}
	if captured.Before(t.Kept) {
		captured = t.Kept
	}
	if over := a.tasks[0].r.Over; !over.IsZero() && captured.After(over) {
		captured = over
	}
	l.SavedWork = quantity.Add(l.SavedWork, quantity.Scale(captured.Sub(t.Kept), cmp.Or(max(a.Speed(), 0), 1)))
	t.Kept = captured
	for _, k := range a.tasks[1:] {
		k.saved(captured)
	}
	l.SavedStep, l.HasSaved, l.SaveTrouble = max(l.SavedStep, b.Step), true, b.Lacks
	t.Step = max(t.Step, b.Step)
	l.Step = max(l.Step, t.Step)
	t.Saves++
	t.SavedBytes = quantity.Add(t.SavedBytes, b.Uploaded)
	t.LastSave = s.now
	if took := min(b.Took, quantity.Decade); took > 0 { // logs from before the limit existed may have more
		if l.SaveCost == 0 {
			l.SaveCost = took
		} else {
			l.SaveCost = (2*l.SaveCost + took) / 3
		}
	}
}

// saved records that a rank's work up to the given time is in a checkpoint.
func (t *Task) saved(captured time.Time) {
	if over := t.r.Over; !over.IsZero() && captured.After(over) {
		captured = over
	}
	if !t.r.Started.IsZero() && captured.After(t.r.Learned.Kept) {
		t.r.Learned.Kept = captured
	}
}

// IdleBelow is the fewest processors that an active program uses. GPUIdleBelow is the smallest share of time that
// one of its GPUs is in use; drivers report whole percents.
const (
	IdleBelow    = 0.05
	GPUIdleBelow = 0.005
)

// Idle reports whether the machine did nothing useful. If the job requests GPUs, only those count: processors that
// spin in a wait loop are not what the user pays for. If the GPU use is unknown, the processors count. The agent of a
// session decides by itself.
func (b UsageSeen) Idle() bool {
	if b.InUse != nil {
		return !*b.InUse
	}
	if b.GPU != nil {
		return *b.GPU < GPUIdleBelow
	}
	return b.CPU < IdleBelow
}

// seesUsage updates the mean number of processors in use.
func (s *State) seesUsage(k *Task, b UsageSeen) {
	if k.r.Phase != TaskRunning {
		return
	}
	t := &k.r.Learned
	span := max(1, s.now.Sub(k.r.Started)-t.CPUSeen)
	t.CPUSeen += span
	t.CPU += (b.CPU - t.CPU) * float64(span) / float64(t.CPUSeen)
	switch {
	case !b.Idle():
		t.IdleFrom = time.Time{}
	case t.IdleFrom.IsZero():
		t.IdleFrom = s.now
	}
}

// ProgramOver returns when the program of a task ended. Its agent reports at t that the outputs are stored.
func ProgramOver(k *Task, b AttemptEnded, t time.Time) time.Time {
	over := t.Add(-max(0, b.Keeping))
	for _, earliest := range []time.Time{k.r.Started, k.r.Learned.Kept} {
		if over.Before(earliest) {
			over = earliest
		}
	}
	return over
}

// seesProgramEnd records the end of a program. When the last task of an attempt completes, all their work is saved.
func (s *State) seesProgramEnd(j *Job, a *Attempt, k *Task, b AttemptEnded) {
	if k.r.Phase == Ended {
		return
	}
	l := &j.runs().Learned
	others := slices.ContainsFunc(a.tasks, func(o *Task) bool {
		return o != k && (o.r.Phase != Ended || o.r.End != "completed")
	})
	if b.Reason == "completed" && !a.tasks[0].r.Started.IsZero() && !others {
		done := max(0, ProgramOver(k, b, s.now).Sub(a.tasks[0].r.Learned.Kept))
		l.SavedWork = quantity.Add(l.SavedWork, quantity.Scale(done, cmp.Or(max(a.Speed(), 0), 1)))
	}
	if b.Step > 0 && k.r.Rank == 0 {
		l.Step = max(b.Step, l.SavedStep)
	}
}

// seesMarket records offers and quotes. It ignores quotes older than the known one.
func (s *State) seesMarket(b MarketSeen) {
	s.seesOffers(b.Offers)
	for _, q := range b.Quotes {
		l := s.offers[q.Offer]
		if l == nil || q.At.Before(l.r.Quote.At) || q.Priced && q.Rate < 0 {
			continue
		}
		if !q.Untried {
			s.sees(l, q.At, q.Available)
		}
		l.lowers(q)
		changed := l.r.Quote.Rate != q.Rate || l.r.Quote.Priced != q.Priced
		l.r.Quote = q
		if changed {
			s.repriced = append(s.repriced, l)
		}
		if changed && q.Priced && l.r.Offer.Capacity == market.Spot {
			s.reprices(l, q)
		}
	}
}

// lowers records the price of a quote if it is the lowest at which the offer could be bought.
func (l *Listing) lowers(q market.Quote) {
	if q.Priced && (q.Available || q.Untried) && (!l.r.Low.Known || q.Rate < l.r.Low.Rate) {
		l.r.Low = plan.Low{Rate: q.Rate, Known: true}
	}
}

// seesOffers records the offers for sale.
func (s *State) seesOffers(offers []market.Offer) {
	before := len(s.sale)
	for _, o := range offers {
		l := s.offers[o.ID]
		if l == nil {
			l = &Listing{}
			l.r.Quote.Offer = o.ID
			s.offers[o.ID] = l
			s.sale = append(s.sale, l)
		}
		if l.r.Offer != o {
			l.r.Offer = o
			s.cools(l)
			s.repriced = append(s.repriced, l)
		}
	}
	if len(s.sale) > before {
		slices.SortFunc(s.sale, func(a, b *Listing) int { return cmp.Compare(a.r.Offer.ID, b.r.Offer.ID) })
	}
}

// reprices starts a new price of an offer for all its machines, and drops prices that no machine is billed at any
// more.
func (s *State) reprices(l *Listing, q market.Quote) {
	l.series.add(q.At, q.Rate)
	if len(l.series.list) < 16 {
		return
	}
	oldest := s.now
	for _, i := range s.instances {
		if i.series == &l.series && i.r.Phase != Gone && i.r.From.Before(oldest) {
			oldest = i.r.From
		}
	}
	l.series.forget(oldest)
}

// sees records whether spot is available: from a quote, or from a launch if nobody polls the offer. A quote stands
// until the next one, so the known state was last confirmed one poll interval ago.
func (s *State) sees(l *Listing, at time.Time, up bool) {
	if l.r.Offer.Capacity != market.Spot {
		return
	}
	if l.r.Record.Known && !l.r.Quote.Untried {
		l.r.Record = l.r.Record.See(at.Add(-max(s.cfg.Poll, s.cfg.TimingOf(l.r.Offer.Provider).Detect)), l.r.Record.Up)
	}
	l.r.Record, l.r.Watch = l.r.Record.See(at, up), l.r.Watch.See(at, up)
}

// seesGrant learns from the answer to a launch that is still awaited.
func (s *State) seesGrant(launch string, granted bool) {
	a := s.allocations[launch]
	if a == nil {
		return
	}
	if l := s.offers[a.r.Machine.Offer]; l != nil {
		s.sees(l, s.now, granted)
	}
}

// EndOf clamps the reported end of an instance to its known life.
func (s *State) EndOf(i *Instance, until time.Time) time.Time {
	if until.After(s.now) {
		until = s.now
	}
	if until.Before(i.r.From) {
		until = i.r.From
	}
	return until
}
