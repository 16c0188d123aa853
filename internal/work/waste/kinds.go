package waste

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// percent returns part of whole in per cent, rounded down; false: whole is nothing.
func percent(part, whole money.Amount) (int64, bool) {
	if whole.Sign() <= 0 {
		return 0, false
	}
	n := part.Times(100).Big()
	return n.Quo(n, whole.Big()).Int64(), true
}

// hours returns a span as people read it.
func hours(d time.Duration) string {
	if d < 2*time.Hour {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

func (s *search) reservations() {
	paid := map[string]Reservation{}
	for _, r := range s.Reservations {
		paid[r.Offer] = r
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) { return r.Instance, r.Team, r.Reserved }) {
		r := paid[p.about]
		unused, ok := percent(p.cost, r.Paid)
		if !ok || unused < UnusedLeast {
			continue
		}
		f := Finding{Kind: UnusedReservation, Needless: whole(p), Action: Schedule, Command: "scrimp jobs --status queued",
			Evidence: fmt.Sprintf("%d %% of what the reservation cost went unused; it is paid until %s. Give its hours to jobs "+
				"that wait or run elsewhere", unused, r.Until.UTC().Format(time.DateOnly))}
		if unused >= UnusedMost {
			f.Action, f.saved = Shrink, whole(p)
			f.Command = renew(r, unused, s.reservedSince())
			f.Evidence = fmt.Sprintf("%d %% of what the reservation cost went unused; it is paid until %s. Renew less",
				unused, r.Until.UTC().Format(time.DateOnly))
			if strings.Contains(f.Command, "--terms") {
				f.Evidence += "; docs/commit.md says how to write your prices into terms.yaml"
			}
		}
		s.claim(p, f)
	}
}

// unusedAll is the unused share of a reservation, in per cent, from which it has no demand to plan with.
const unusedAll = 99

// planLeast is the demand that scrimp commit plan needs.
const planLeast = 28 * 24 * time.Hour

// reservedSince returns for how long jobs have been using reservations.
func (s *search) reservedSince() time.Duration {
	first := s.Until
	for _, list := range [][]Row{s.Before, s.Rows} {
		for i := range list {
			if r := &list[i]; r.Capacity == "reserved" && r.Job != "" && r.Begin.Before(first) {
				first = r.Begin
			}
		}
	}
	return s.Until.Sub(first)
}

// renew returns the commands that say how much of a reservation is worth renewing. Known is for how long jobs have been
// using reservations.
func renew(r Reservation, unused int64, known time.Duration) string {
	if unused >= unusedAll {
		return "let it end on " + r.Until.UTC().Format(time.DateOnly) + " and do not renew it: nobody used it"
	}
	if known < planLeast {
		return "renew fewer machines; scrimp commit plan says how many once jobs have used reservations for 28 days"
	}
	text := "scrimp commit history --capacity reserved > demand.csv && scrimp commit plan --demand demand.csv "
	if r.Rate > 0 && r.Rate < r.OnDemand {
		return text + fmt.Sprintf("--discount %d%%", int64(r.OnDemand-r.Rate)/max(1, int64(r.OnDemand)/100))
	}
	return text + "--terms terms.yaml"
}

// leftovers returns when each instance of the list became one.
func leftovers(list []Leftover, open bool) map[string]Leftover {
	by := map[string]Leftover{}
	for _, l := range list {
		if !open || l.Until.IsZero() {
			if was, ok := by[l.Instance]; !ok || l.Since.Before(was.Since) {
				by[l.Instance] = l
			}
		}
	}
	return by
}

func (s *search) volumes() {
	gone := leftovers(s.Volumes, false)
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		l, ok := gone[r.Instance]
		return r.Instance, r.Team, ok && r.Storage && r.End.After(l.Since)
	}) {
		l := gone[p.about]
		f := Finding{Kind: OrphanVolume, Needless: whole(p), Action: Delete, saved: whole(p),
			Evidence: fmt.Sprintf("its machine is gone since %s, and its volume or address costs money", clock(l.Since)),
			Command:  "delete it in the provider's console: its instance is " + p.about}
		if !l.Until.IsZero() {
			f.Action, f.saved, f.Command = Keep, nil, "scrimp anomalies"
			f.Evidence = fmt.Sprintf("it outlived its machine from %s to %s, and is gone", clock(l.Since), clock(l.Until))
		}
		s.claim(p, f)
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// machines claims the time of machines that nobody uses: those that no job requested, and those that are silent.
func (s *search) machines() {
	unknown, silent := map[string]Machine{}, map[string]Machine{}
	for _, m := range s.Machines {
		switch {
		case m.Unknown:
			unknown[m.Instance] = m
		case !m.Silent.IsZero() && s.Until.Sub(m.Silent) >= SilentFor:
			silent[m.Instance] = m
		}
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		_, ok := unknown[r.Instance]
		return r.Instance, r.Team, ok && !r.Reserved
	}) {
		f := Finding{Kind: UnknownMachine, Needless: whole(p), Action: Stop, saved: whole(p), Command: "scrimp machines",
			Evidence: "it runs, and no job of this server requested it: terminate it at its engine if nobody knows it"}
		if unknown[p.about].Undecided { // it may be the healthy machine of a job
			f.Needless, f.saved, f.Action = nil, nil, Keep
			f.Command = "scrimp adopt " + p.about + " if the server that rented it is gone for good, or scrimp release " +
				p.about + " if that server still uses it"
			f.Evidence = "it is of an earlier incarnation of the log, and nobody has decided whose it is: adopt or release it"
		}
		s.claim(p, f)
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		m, ok := silent[r.Instance]
		return r.Instance, r.Team, ok && !r.Reserved && !r.Begin.Before(m.Silent)
	}) {
		m := silent[p.about]
		f := Finding{Kind: SilentMachine, Needless: whole(p), Action: Stop, saved: whole(p), Command: "scrimp machines",
			Evidence: fmt.Sprintf("its agent has said nothing for %s", hours(s.Until.Sub(m.Silent)))}
		if m.Missing {
			f.Evidence = fmt.Sprintf("its engine has not listed it for %s; check the provider's bill",
				hours(s.Until.Sub(m.Silent)))
		}
		if m.Job != "" {
			f.Command = "scrimp pause " + m.Job
		}
		s.claim(p, f)
	}
}

// idle claims machine time without a task: of each machine that waits for too long now, and of a team whose machines
// wait for too large a share of their time.
func (s *search) idle() {
	waits := map[string]Machine{}
	for _, m := range s.Machines {
		waits[m.Instance] = m
	}
	now := leftovers(s.IdleMachines, true)
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		_, found := now[r.Instance]
		return r.Instance, r.Team, found && r.Idle && !r.Due && waits[r.Instance].Idle
	}) {
		f := Finding{Kind: UnusedMachine, Needless: whole(p), Action: Stop,
			Command:  "scrimp waste apply " + ID(UnusedMachine, p.team, p.about, p.currency) + " --yes",
			Effect:   fmt.Sprintf("scrimp terminates the machine %s, which has no task.", p.about),
			Evidence: fmt.Sprintf("it has had no task since %s", clock(now[p.about].Since))}
		if m := waits[p.about]; !m.Keep.IsZero() {
			left := min(m.Keep.Sub(s.Until), Month)
			if left <= 0 {
				continue // scrimp terminates it anyway
			}
			f.Begins, f.Ends, f.Saving = s.Until, s.Until.Add(left), new(m.Rate.Until(left))
			f.Evidence += fmt.Sprintf(", and scrimp keeps it until %s", clock(m.Keep))
		}
		s.claim(p, f)
	}
	all := map[string]time.Duration{}
	for i := range s.rows {
		if r := &s.rows[i]; !r.Reserved && r.Time > 0 {
			all[r.Team] += r.Time
		}
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		return "machines between jobs", r.Team, r.Idle && !r.Due
	}) {
		if p.time < IdleLeast || p.time*100 < all[p.team]*IdleShare {
			continue
		}
		s.claim(p, Finding{Kind: IdleTime, Needless: whole(p), Action: Shrink, Command: "lower timing: idle in engines.yaml",
			Evidence: fmt.Sprintf("machines had no task for %s of %s (%d %%), beyond minimum charges; a shorter wait "+
				"saves part of it", hours(p.time),
				hours(all[p.team]), p.time*100/all[p.team])})
	}
}

func (s *search) schedules() {
	of, by := map[string]string{}, map[string]Recurring{}
	for _, c := range s.Schedules {
		if !c.Open || c.Failed < FailedRuns {
			continue
		}
		by[c.Name] = c
		for g := range c.Groups {
			of[g] = c.Name
		}
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		name, ok := of[r.Group]
		return name, r.Team, ok && r.Group != ""
	}) {
		c := by[p.about]
		evidence := fmt.Sprintf("its last %d runs did not succeed", c.Failed)
		if c.Why != "" {
			evidence += ": " + c.Why
		}
		failed := money.Amount{}
		for _, i := range p.rows {
			if c.Bad[s.rows[i].Group] {
				failed = failed.Add(s.rows[i].Amount)
			}
		}
		s.claim(p, Finding{Kind: FailingSchedule, Needless: &failed, Action: Stop, saved: whole(p), Evidence: evidence,
			Pipeline: c.Pipeline, Command: "scrimp waste apply " + ID(FailingSchedule, p.team, p.about, p.currency) + " --yes",
			Effect: fmt.Sprintf("scrimp ends the schedule %s; runs in progress save and stop.", p.about)})
	}
}

// untagged claims costs without a team, where the installation has teams, and costs without a project, where the team
// uses projects.
func (s *search) untagged() {
	projects := map[string]bool{}
	for i := range s.rows {
		if s.rows[i].Project != "" {
			projects[s.rows[i].Team] = true
		}
	}
	for _, p := range s.gather(func(r *Row) (string, string, bool) {
		by := cmp.Or(r.User, r.Instance, "nobody")
		switch {
		case r.Reserved:
			return "", "", false
		case r.Team == "" && s.HasTeams:
			return "no team, by " + by, r.Team, true
		case r.Project == "" && projects[r.Team]:
			return "no project, by " + by, r.Team, true
		}
		return "", "", false
	}) {
		s.claim(p, Finding{Kind: Untagged, Needless: &money.Amount{}, Action: Keep,
			Command:  "write team: and project: in the job file",
			Evidence: fmt.Sprintf("%s of machine time and its costs belong to %s", hours(p.time), p.about)})
	}
}
