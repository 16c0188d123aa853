package budget_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// sure returns a job of team a that lasts exactly d, on a machine at $10 per hour.
func sure(id string, d time.Duration, runs bool) budget.Course {
	return budget.Course{ID: id, Owner: ledger.Owner{Team: "a"}, Runs: runs, Rate: 10e12, Quick: d, Lasts: d, Slow: d,
		Known: true}
}

func monthly(dollars int64) budget.Limit {
	return budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: new(money.Picos(dollars * 1e12))}
}

func foresee(l budget.Limit, spent int64, places int, courses ...budget.Course) budget.Outlook {
	u := map[string]budget.Use{l.Name(): {Spent: money.Picos(spent * 1e12)}}
	return budget.Foresee([]budget.Limit{l}, u, courses, places, false, now)[l.Name()]
}

// A job that ends in an hour does not spend until the end of the month; at its present rate it would reach the
// limit.
func TestOutlook_StopsSpendingAtTheEndOfAJob(t *testing.T) {
	l := monthly(100)
	o := foresee(l, 80, 4, sure("j", time.Hour, true))
	if at, ok := l.Breach(budget.Use{Spent: money.Picos(80e12)}, 10e12, now); !ok || !at.Equal(now.Add(2*time.Hour)) {
		t.Fatalf("at the present rate it is reached %v, %v: the test shows nothing", at, ok)
	}
	if o.Chance != 0 || o.Breach != nil || o.Earliest != nil || o.Open != nil || len(o.Unknown) != 0 ||
		o.Spent != money.Picos(90e12) || o.Least != o.Spent || *o.Most != o.Spent {
		t.Errorf("%+v", o)
	}
}

// A queued job starts, and spends, when its turn comes: one of two places is free, and the third job takes the
// place of the one that ends first.
func TestOutlook_QueuedJobSpendsFromItsTurn(t *testing.T) {
	o := foresee(monthly(100), 30, 2, sure("a", time.Hour, true), sure("b", 4*time.Hour, false),
		sure("c", 4*time.Hour, false), sure("d", time.Hour, false))
	// a and b start now, c takes a's place after an hour: 30 + 20 + 2.5 · 20 = 100.
	if o.Breach == nil || !o.Breach.Equal(now.Add(3*time.Hour+30*time.Minute)) || o.Chance != 1 ||
		!o.Earliest.Equal(*o.Latest) || o.Spent != money.Picos(130e12) {
		t.Errorf("%+v, breach %v", o, o.Breach)
	}
	if want := []budget.Spender{{Job: "b", Cost: money.Picos(35e12)}, {Job: "c", Cost: money.Picos(25e12)},
		{Job: "a", Cost: money.Picos(10e12)}}; !slices.Equal(o.Jobs, want) || o.More != 0 {
		t.Errorf("by %v and %d more, want %v", o.Jobs, o.More, want)
	}
	one := monthly(100)
	one.Running = new(1)
	if o := foresee(one, 30, 2, sure("a", time.Hour, true), sure("b", 4*time.Hour, false),
		sure("c", 4*time.Hour, false)); !o.Breach.Equal(now.Add(7 * time.Hour)) {
		t.Errorf("with one at a time it is reached %v", o.Breach)
	}
	other := sure("z", 3*time.Hour, true)
	other.Owner.Team = "b"
	if o := foresee(monthly(100), 80, 1, other, sure("a", 4*time.Hour, false)); !o.Breach.Equal(now.Add(5 * time.Hour)) {
		t.Errorf("behind a job of another team it is reached %v", o.Breach)
	}
}

// A job stops at its budget, so the hold of a job is the most that it spends.
func TestOutlook_StaysWithinTheBudgetsOfJobs(t *testing.T) {
	long := sure("long", 100*time.Hour, true)
	long.Bounded, long.Rest = true, money.Picos(15e12)
	if o := foresee(monthly(100), 80, 4, long); o.Chance != 0 || o.Spent != money.Picos(95e12) {
		t.Errorf("%+v", o)
	}
	dark := budget.Course{ID: "dark", Owner: long.Owner, Runs: true, Rate: 10e12, Bounded: true, Rest: long.Rest}
	if o := foresee(monthly(100), 80, 4, dark); o.Open != nil || o.UnknownJobs != 1 || o.Most == nil ||
		*o.Most != money.Picos(95e12) || o.Spent != money.Picos(80e12) {
		t.Errorf("nobody knows how long it runs, but its budget is known: %+v", o)
	}
}

// A job of unknown length is reported as unknown and does not count as free.
func TestOutlook_ReportsUnknownJobs(t *testing.T) {
	dark := budget.Course{ID: "dark", Owner: ledger.Owner{Team: "a"}, Runs: true, Rate: 10e12}
	o := foresee(monthly(100), 80, 4, dark, sure("j", time.Hour, true))
	if o.Breach != nil || o.Chance != 0 || o.Open == nil || !o.Open.Equal(now.Add(time.Hour)) ||
		!slices.Equal(o.Unknown, []string{"dark"}) {
		t.Errorf("%+v", o)
	}
	ever := monthly(1e6)
	ever.Window = budget.Total
	if o := foresee(ever, 80, 4, dark); o.Most != nil || o.By != nil || o.UnknownJobs != 1 {
		t.Errorf("it may go on for ever: %+v", o)
	}
	u := map[string]budget.Use{}
	l := monthly(1000)
	if o := budget.Foresee([]budget.Limit{l}, u, []budget.Course{sure("j", time.Hour, true)}, 1, true,
		now)[l.Name()]; !o.Beyond {
		t.Error("more wait than were looked at, and it is not said")
	}
	if o := budget.Foresee([]budget.Limit{l}, u, []budget.Course{sure("j", 2000*time.Hour, true)}, 1, true,
		now)[l.Name()]; o.Beyond {
		t.Error("none of the others has its turn in this window")
	}
}

// The range covers the independent variation of jobs and contains the expected value. A limit between the least and
// the most spending is reached with a probability between 0 and 1.
func TestOutlook_ChanceFollowsTheSpread(t *testing.T) {
	job := sure("j", 4*time.Hour, true)
	job.Quick, job.Slow = 3*time.Hour, 6*time.Hour
	for _, c := range []struct {
		dollars  int64
		at, most float64
	}{{20, 1, 1}, {30, 0.87, 0.93}, {40, 0.45, 0.55}, {60, 0.07, 0.13}, {200, 0, 0}} {
		o := foresee(monthly(c.dollars), 0, 1, job)
		if o.Chance < c.at || o.Chance > c.most || (o.Breach != nil) != (o.Chance > 0.5) {
			t.Errorf("$%d is reached with a chance of %.2f, want %.2f to %.2f: %+v", c.dollars, o.Chance, c.at, c.most, o)
		}
	}
	if o := foresee(monthly(200), 0, 1, job); o.Spent != money.Picos(40e12) || o.Least.Cmp(money.Picos(30e12)) >= 0 ||
		o.Most.Cmp(money.Picos(60e12)) <= 0 {
		t.Errorf("%+v", o)
	}
	a, b := foresee(monthly(40), 0, 1, job), foresee(monthly(40), 0, 1, job)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same jobs give another answer")
	}
}

// BenchmarkForesee measures one answer with a long queue and several limits, some of them full.
func BenchmarkForesee(b *testing.B) {
	var limits []budget.Limit
	for i := range 10 {
		l := monthly(1000)
		l.Scope, l.Running = budget.Scope(fmt.Sprint("team:", i)), new(1)
		limits = append(limits, l)
	}
	var courses []budget.Course
	for i := range 500 {
		c := sure(fmt.Sprint("j", i), time.Duration(i%7+1)*time.Hour, i < 4)
		c.Slow, c.Owner.Team = 2*c.Lasts, fmt.Sprint(i%10)
		courses = append(courses, c)
	}
	for b.Loop() {
		if o := budget.Foresee(limits, nil, courses, 4, true, now); len(o) != 10 {
			b.Fatal(o)
		}
	}
}
