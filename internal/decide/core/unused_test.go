package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/money"
)

// At every moment the cost of a reservation is the sum of the attempts' parts, the booked unused time and the
// unbooked rest. The rest is booked exactly.
func TestUnused_IsKnownBetweenBookings(t *testing.T) {
	h := newHall(t, 3)
	h.submit("a", 0)
	h.tell(h.propose())
	if h.on("a") != paidFor {
		t.Fatalf("it is on %q", h.on("a"))
	}
	unused := func(since time.Time) (sum money.Amount) {
		for _, u := range h.m.Unused(since, h.now) {
			sum = sum.Add(u.Amount)
		}
		return sum
	}
	booked, bookings := money.Amount{}, 0
	paid := h.seen.Offers[1].Reserved
	first := paid.Committed(h.now).Sub(unused(time.Time{})).Sub(costOf(h, h.now)) // booked before
	for range 45 * 6 {
		h.now = h.now.Add(10 * time.Second)
		unposted := money.Amount{} // between two steps, as reports read it
		for _, p := range h.m.Unposted("t", time.Time{}, h.now) {
			if p.Rule == state.ReservedRule {
				unposted = unposted.Add(state.CostOf(p))
				if p.Owner.Tenant != "t" {
					t.Fatalf("the reservation is of the tenant %q", p.Owner.Tenant)
				}
			}
		}
		if unposted != unused(time.Time{}) {
			t.Fatalf("%v are not posted, and %v are not used", unposted, unused(time.Time{}))
		}
		before, part := unused(time.Time{}), unused(h.now.Add(-time.Second))
		second := paid.Committed(h.now).Sub(paid.Committed(h.now.Add(-time.Second)))
		if second = second.Sub(costOf(h, h.now)).Add(costOf(h, h.now.Add(-time.Second))); part != second {
			t.Fatalf("of the last second nobody used %v, and it was %v", part, second)
		}
		posted := money.Amount{}
		for _, p := range h.tell(core.Tick{}).Postings {
			if _, _, cost := p.To.IsCost(); cost && p.Rule == state.ReservedRule {
				posted = posted.Add(p.Amount)
			}
			// the job's rate is above the paid rate
			if _, _, back := p.From.IsCost(); back && p.Rule == state.ReservedRule {
				posted = posted.Sub(p.Amount)
			}
		}
		if !posted.IsZero() {
			if bookings++; posted != before || unused(time.Time{}).Sign() != 0 {
				t.Fatalf("booked are %v, and %v were not booked; %v are left", posted, before, unused(time.Time{}))
			}
		}
		booked = booked.Add(posted)
		if all := first.Add(booked).Add(unused(time.Time{})).Add(costOf(h, h.now)); all != paid.Committed(h.now) {
			t.Fatalf("in all %v, and it cost %v", all, paid.Committed(h.now))
		}
	}
	if bookings < 2 {
		t.Errorf("it was booked %d times", bookings)
	}
}

// costOf returns the cost of attempts on reserved machines by t.
func costOf(h *hall, t time.Time) (sum money.Amount) {
	for _, a := range h.m.Live() {
		if a.Offer() == paidFor {
			sum = sum.Add(a.Cost(t))
		}
	}
	return sum
}

// In a fleet whose jobs end, start and move, the unused cost of every reservation is what was paid less the booked
// amounts and the unposted cost of all attempts there.
func TestUnused_CountsEveryAttemptOfAFleet(t *testing.T) {
	f := newFleet(t, 100)
	for range 20 {
		f.submit()
	}
	busy := 0
	for n := range 30 {
		f.change()
		if n%10 == 0 {
			f.round()
		}
		f.now = f.now.Add(time.Second)
		var want, got money.Amount
		for _, l := range f.m.State().Sale() {
			if o := l.Offer(); o.Reserved.Count > 0 {
				s := f.m.State().Stock(o.ID)
				want = want.Add(o.Reserved.Committed(f.now)).Sub(s.Used).Sub(s.Idle)
			}
		}
		for _, a := range f.m.Live() {
			if m := a.Machine(); m.Prepaid {
				busy++
				want = want.Sub(m.Owned(a.Cost(f.now).Sub(a.Posted())))
			}
		}
		for _, u := range f.m.Unused(time.Time{}, f.now) {
			got = got.Add(u.Amount)
		}
		if got != want {
			t.Fatalf("after change %d nobody used %v, and it was %v", n, got, want)
		}
	}
	if busy == 0 {
		t.Error("no job has a reserved machine")
	}
}

// However many jobs started at the same time, a step books the hour of a few of them and the unused time of one
// reservation. The rest follows in steps at the same time, and then nothing is left.
func TestStep_BooksALittleAtATime(t *testing.T) {
	f := newFleet(t, 100)
	f.now = f.now.Add(time.Hour + time.Minute)
	most, posted, settled := 0, 0, 0
	for n := 0; ; n++ {
		if n > 10_000 {
			t.Fatal("the steps do not end")
		}
		out := f.tell("", core.Tick{})
		jobs, offers := map[string]bool{}, 0
		for _, p := range out.Postings {
			if p.Owner.Job != "" {
				jobs[p.Owner.Job] = true
			}
		}
		for _, fact := range out.Facts {
			if _, ok := fact.(state.ReserveSettled); ok {
				offers++
			}
		}
		if most, posted, settled = max(most, len(jobs)), posted+len(jobs), settled+offers; offers > 1 {
			t.Fatalf("step %d books %d reservations", n, offers)
		}
		if out.Wake.IsZero() || out.Wake.After(f.now) {
			break
		}
	}
	for _, a := range f.m.Live() {
		if k := a.Tasks()[0]; f.now.Sub(k.Accrued()) >= time.Hour {
			t.Errorf("%s was booked at %v", a.ID(), k.Accrued())
		}
	}
	for _, l := range f.m.State().Sale() {
		if o := l.Offer(); o.Reserved.Count > 0 && !f.m.State().Stock(o.ID).Settled.Equal(f.now) {
			t.Errorf("%s was booked at %v", o.ID, f.m.State().Stock(o.ID).Settled)
		}
	}
	if t.Logf("%d jobs, at most %d a step, and %d reservations", posted, most, settled); most > 16 || posted < 500 || settled != 10 {
		t.Errorf("%d jobs were booked, at most %d a step, and %d reservations", posted, most, settled)
	}
}
