package sim

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// tell prints a step's event and its results.
func (s *stage) tell(e core.Event, out core.Outcome) {
	if s.stale(e.Body) {
		return
	}
	s.rented(e.Body)
	switch b := e.Body.(type) {
	case core.JobSubmitted:
		s.line("submit", "%s", b.Job)
	case core.LaunchRefused:
		s.line("refused", "%s: %s", b.Launch, b.Reason)
	case core.AttemptStarted:
		from := "from nothing"
		if b.Restored != "" {
			from = fmt.Sprintf("restored %s, from step %d", b.Restored, b.Step)
		}
		s.line("started", "%s: %s", b.Attempt, from)
	case core.NoticeGiven:
		s.line("notice", "%s: its machine goes in %v", b.Attempt, b.Until.Sub(e.At).Round(time.Second))
	case core.CheckpointSaved:
		s.saves[b.Attempt]++
		s.step[b.Attempt] = b.Step
	case core.AgentSilent:
		s.line("silent", "%s: no word for %v", b.Attempt, e.At.Sub(b.Since).Round(time.Minute))
	case core.AttemptEnded:
		how := "not saved"
		if b.Saved {
			how = "saved"
		}
		if b.Outputs != "" {
			how += ", outputs kept"
		}
		if b.Error != "" {
			how += ": " + b.Error
		}
		s.line("program", "%s: %s with status %d at step %d, %s", b.Attempt, b.Reason, b.Exit, b.Step, how)
	case core.LaunchPending:
		s.line("pending", "%s waits in the provider's queue", b.Launch)
	case core.LaunchExpired:
		s.line("expired", "%s", b.Launch)
	case core.LaunchCancelled:
		s.line("expired", "%s, as we asked", b.Launch)
	case core.InstanceEnded:
		s.line("gone", "%s: %s after %s", b.Instance, b.Cause, s.lasted(b))
	case core.BillReceived:
		lines := []string{}
		for _, l := range b.Lines {
			rule := l.Rule
			if rule == "" {
				rule = "seconds"
			}
			lines = append(lines, rule+" "+dollars(l.Amount))
		}
		s.line("bill", "%s: %s", b.Instance, strings.Join(lines, ", "))
	}
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.Decided:
			s.decision(f)
		case state.JobPreempted:
			s.line("preempt", "%s for %s: repeats %v, restarts for %v, %s", f.Job, f.By, f.Lost.Round(time.Second),
				f.Restart.Round(time.Second), dollars(f.Cost))
		}
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			s.line("launch", "%s: %s", a.Allocation, a.Offer)
		case core.Cancel:
			s.line("cancel", "%s: %s", a.Allocation, a.Why)
		case core.Probe:
			s.line("look", "%s: at %s", a.Job, a.Offer)
		case core.Drain:
			s.line("drain", "%s: %s", a.Attempt, a.Why)
		case core.Terminate:
			s.line("return", "%s: %s", a.Instance, a.Why)
		case core.Notify:
			s.line("job", "%s is %s: %s", a.Job, a.State, a.Why)
		}
	}
	if b, ok := e.Body.(core.BillReceived); ok {
		s.posted(b.Instance)
	}
	s.waits()
}

// lasted returns how long an instance was rented, if known.
func (s *stage) lasted(b core.InstanceEnded) string {
	from, ok := s.since[b.Instance]
	if i := s.w.instances[b.Instance]; i != nil {
		from, ok = i.from, true
	}
	if !ok {
		return "some time"
	}
	return strings.TrimSpace(hms(b.Until.Sub(from)))
}

// rented prints the changes among the billed machines.
func (s *stage) rented(b core.Body) {
	now := map[string]bool{}
	for _, a := range s.w.m.Live() {
		if a.Instance() == "" {
			continue
		}
		now[a.Instance()], s.since[a.Instance()] = true, a.From()
		if !s.live[a.Instance()] {
			verb := "granted"
			if _, found := b.(core.InventorySeen); found {
				verb = "found"
			}
			s.line(verb, "%s: %s at %s", a.ID(), a.Instance(), price(a.LaunchRate()))
		}
	}
	if _, inventory := b.(core.InventorySeen); inventory {
		for _, id := range sortedKeys(s.live) {
			if !now[id] {
				s.line("missing", "%s is not in the provider's inventory", id)
			}
		}
	}
	s.live = now
}

// stale prints messages of ended attempts.
func (s *stage) stale(b core.Body) bool {
	attempt := ""
	switch b := b.(type) {
	case core.AttemptStarted:
		attempt = b.Attempt
	case core.CheckpointSaved:
		attempt = b.Attempt
	case core.AttemptEnded:
		attempt = b.Attempt
	default:
		return false
	}
	if _, live := s.w.m.Attempt(attempt); live {
		return false
	}
	s.line("stale", "%s says %s, and nothing changes", attempt, b.Kind())
	return true
}

func (s *stage) decision(f state.Decided) {
	d := f.Decision
	take := string(d.Take)
	if take == "" {
		take = "nothing"
	}
	short := fmt.Sprintf("%s %s", take, d.Why)
	last := s.said[f.Job]
	if last == short || d.Why == plan.Stays && strings.HasPrefix(last, take+" ") {
		return
	}
	s.said[f.Job] = short
	text := fmt.Sprintf("%s: %s, %s; %s", f.Job, take, d.Why, d.Mode)
	if d.HasSlack {
		text += fmt.Sprintf(", slack %s", strings.TrimSpace(hms(d.Slack)))
	}
	var not []string
	j, _ := s.w.known(f.Job)
	for _, r := range j.Last().Rejected {
		not = append(not, fmt.Sprintf("%s (%s)", r.Offer, r.Why))
	}
	if len(not) > 0 {
		text += "; not " + strings.Join(not, ", ")
	}
	s.line("decide", "%s", text)
}

// posted prints the ledger's postings for an ended instance.
func (s *stage) posted(instance string) {
	parts, whose := s.byUse(func(o ledger.Owner) bool { return o.Instance == instance })
	if whose == "" {
		whose = "nobody"
	}
	s.line("books", "%s of %s: %s", instance, whose, parts)
}

func (s *stage) byUse(mine func(ledger.Owner) bool) (text, whose string) {
	sums := map[string]money.Amount{}
	for _, p := range s.w.postings {
		if !mine(p.Owner) {
			continue
		}
		whose = p.Owner.Attempt
		if _, u, ok := p.To.IsCost(); ok {
			sums[string(u)] = sums[string(u)].Add(p.Amount)
		}
		if _, u, ok := p.From.IsCost(); ok {
			sums[string(u)] = sums[string(u)].Sub(p.Amount)
		}
	}
	var parts []string
	for _, u := range sortedKeys(sums) {
		if !sums[u].IsZero() {
			parts = append(parts, u+" "+dollars(sums[u]))
		}
	}
	if len(parts) == 0 {
		return "nothing", whose
	}
	return strings.Join(parts, ", "), whose
}

// receipts prints the outcome of each job, and checks the properties of an ended life.
func (s *stage) receipts() {
	w := s.w
	over := true
	for _, j := range w.allJobs() {
		over = over && j.State().Over()
		saved := "no checkpoint"
		if j.HasSaved() {
			saved = fmt.Sprintf("checkpoint at step %d", j.SavedStep())
		}
		when := "still"
		if !j.Finished().IsZero() {
			when = "after " + strings.TrimSpace(hms(j.Finished().Sub(j.Submitted())))
		}
		fmt.Fprintf(&s.b, "receipt  %s: %s (%s) %s, %s\n", j.ID(), j.State(), j.Why(), when, saved)
		cost := dollars(j.Spent(w.now))
		if j.Terms().HasBudget {
			cost += " of " + dollars(j.Terms().Budget)
		}
		uses, _ := s.byUse(func(o ledger.Owner) bool { return o.Job == j.ID() })
		fmt.Fprintf(&s.b, "         cost %s: %s\n", cost, uses)
		taken := 0
		for _, a := range j.Attempts() {
			if a.Taken() {
				taken++
			}
		}
		text := fmt.Sprintf("%d attempts, %d interruptions", len(j.Attempts()), taken)
		if d := j.Terms().Deadline; !d.IsZero() && j.State() == core.Succeeded {
			if j.Finished().After(d) {
				text += ", " + strings.TrimSpace(hms(j.Finished().Sub(d))) + " late"
			} else {
				text += ", " + strings.TrimSpace(hms(d.Sub(j.Finished()))) + " early"
			}
		}
		if j.Outputs() != "" {
			text += ", " + j.Outputs()
		}
		fmt.Fprintf(&s.b, "         %s\n", text)
	}
	if over && w.up && !w.script.still {
		w.check()
		if len(w.Broken) == 0 {
			for _, z := range w.zones {
				if id := string(z.firmOffer.ID); z.firmOffer.Reserved.Count > 0 {
					idle, _ := s.byUse(func(o ledger.Owner) bool { return o.Instance == id })
					fmt.Fprintf(&s.b, "reserved %s: %s for nobody, of %s; the rest is the jobs'\n", id, idle, dollars(z.firmOffer.Reserved.Paid))
				}
			}
			fmt.Fprintf(&s.b, "ledger   %d postings agree with the provider's bills\n", len(w.postings))
		}
	}
}

func dollars(a money.Amount) string { return money.Format(a, money.USD, 4) }

func price(r money.Rate) string { return "$" + r.String() + "/h" }
