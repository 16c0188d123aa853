package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// lineOf returns a difference of the job's machine.
func lineOf(j *Job, amount int64) ReconciledLine {
	o := j.Terms().Owner
	o.Job, o.Attempt, o.Task, o.Instance = j.ID(), j.ID()+".1", j.ID()+".1/0", "i-"+j.ID()
	return ReconciledLine{Owner: o, Rule: ledger.ReconciledRule("price"), Category: ledger.Compute, Use: ledger.Useful, Provider: "p",
		Amount: money.Picos(amount), Currency: money.USD, From: dawn, To: dawn.Add(time.Hour)}
}

// A difference is a cost of its job, billed by the provider. The core ignores an event that does not know the newest
// one, so a repeated request books once. A snapshot keeps the number of the newest one.
func TestReconcile_BooksOnceAndInOrder(t *testing.T) {
	a := newArchiving(t, 0, 0)
	a.job("j", "completed", true)
	j, _ := a.m.Job("j")
	before := j.Spent(a.now)
	first := BillReconciled{Month: "2026-10", Lines: []ReconciledLine{lineOf(j, 5e11), lineOf(j, -2e11)}}
	out := a.step(time.Minute, first)
	moved := map[ledger.Account]money.Amount{}
	for _, p := range out.Postings {
		moved[p.From], moved[p.To] = moved[p.From].Sub(p.Amount), moved[p.To].Add(p.Amount)
		if p.Phase != ledger.Billed || !p.Begin.Equal(dawn) || p.Rule != "bill_price" {
			t.Errorf("%+v", p)
		}
	}
	want := money.Picos(3e11)
	if len(out.Postings) != 4 || moved["cost/compute/useful"] != want || moved["invoice/p"] != want.Neg() || !moved["payable/p"].IsZero() {
		t.Errorf("%d postings move %v", len(out.Postings), moved)
	}
	if got := j.Spent(a.now); got != before.Add(want) {
		t.Errorf("the job costs %v, want %v and %v", got, before, want)
	}
	if out := a.step(time.Minute, first); len(out.Postings)+len(out.Facts) != 0 {
		t.Errorf("sent again it books %+v", out.Postings)
	}
	upTo := a.m.State().Reconciled()
	if upTo == 0 || upTo >= a.m.State().Seq() {
		t.Errorf("the newest is event %d of %d", upTo, a.m.State().Seq())
	}
	text, err := a.m.Snapshot()
	must.Do(t, err)
	r, err := state.Restore(text)
	if err != nil || r.Reconciled() != upTo {
		t.Errorf("%v: restored with %d, want %d", err, r.Reconciled(), upTo)
	}
	if x, y := sums(a.m), sums(again(t, a.m)); x != y {
		t.Errorf("the sums are\n%s\nand after a restart\n%s", x, y)
	}
	first.After = upTo
	if out := a.step(time.Minute, first); len(out.Postings) != 4 {
		t.Errorf("the next one books %+v", out.Postings)
	}
	if got := j.Spent(a.now); got != before.Add(want).Add(want) {
		t.Errorf("the job costs %v", got)
	}
	missing := a.m.jobs.Missing(Event{Body: BillReconciled{Lines: []ReconciledLine{{Owner: ledger.Owner{Job: "old"}}}}})
	if !slices.Equal(missing, []string{"old"}) {
		t.Errorf("missing are %v", missing)
	}
}

// The core ignores lines that lack what a posting needs. It books lines for machines that it has forgotten under their
// owner.
func TestReconcile_TakesAnyLine(t *testing.T) {
	a := newArchiving(t, 0, 0)
	whole := ReconciledLine{Owner: ledger.Owner{Instance: "gone", Team: "t"}, Rule: "bill_tax", Category: ledger.Overhead, Use: ledger.Idle,
		Provider: "p", Amount: money.Picos(7), Currency: money.USD, From: dawn.Add(time.Hour), To: dawn}
	lines := []ReconciledLine{{}, whole}
	for _, drop := range []func(*ReconciledLine){func(l *ReconciledLine) { l.Rule = "credit" }, func(l *ReconciledLine) { l.Provider = "" },
		func(l *ReconciledLine) { l.Currency = "" }, func(l *ReconciledLine) { l.Use = "" }, func(l *ReconciledLine) { l.Category = "" }} {
		l := whole
		drop(&l)
		lines = append(lines, l)
	}
	out := a.step(time.Minute, BillReconciled{Lines: lines})
	if len(out.Postings) != 2 || out.Postings[0].Owner.Team != "t" || !out.Postings[0].Begin.IsZero() {
		t.Errorf("%+v", out.Postings)
	}
}
