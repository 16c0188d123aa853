package incident

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/money"
)

var kinds = []Kind{IdleMachine, Interruptions, RunawayTrials, PriceJump, FallBack, TransferStorm, OrphanVolume, OtherMachine,
	CostCreep, Stall, Unpriced, LongRun, Spend}

// Each dismissed incident multiplies by 1.25, each confirmed one divides by it, within 1.25^-2 and 1.25^4.
func TestFactor_FollowsTheStatedRuleWithinItsBounds(t *testing.T) {
	for dismissed := range 9 {
		for confirmed := range 9 {
			want := 1.0
			for n := min(dismissed-confirmed, 4); n > 0; n-- {
				want *= 1.25
			}
			for n := max(dismissed-confirmed, -2); n < 0; n++ {
				want /= 1.25
			}
			if got := Factor(dismissed, confirmed); got < want-1e-9 || got > want+1e-9 || got < 0.64-1e-9 || got > 2.4415 {
				t.Errorf("%d dismissed, %d confirmed: %g, want %g", dismissed, confirmed, got, want)
			}
		}
	}
	for _, k := range kinds {
		if text := Threshold(k, 1); text == "" || text == Threshold(k, 1.25) || text == Threshold(k, 0.64) || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", k, text)
		}
	}
	if text := Threshold(IdleMachine, 1.25); text != "no task for 56.2 min, and for 2.25 times as long as usual" {
		t.Errorf("%q", text)
	}
}

// The factors over time are those of the answers counted anew at each time.
func TestTurns_AgreeWithACountOfTheAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s Settings
	for range 300 {
		s.Answers = append(s.Answers, Answer{Name: fmt.Sprint(r.IntN(40)), Kind: kinds[r.IntN(2)], Team: []string{"a", "b"}[r.IntN(2)],
			At: day.Add(time.Duration(r.IntN(500)) * time.Minute), Confirmed: r.IntN(3) == 0})
	}
	turns := s.turns()
	for _, k := range kinds[:2] {
		for _, team := range []string{"a", "b", "c"} {
			for m := range 520 {
				now := day.Add(time.Duration(m-10) * time.Minute)
				if got, want := factorAt(turns[[2]string{string(k), team}], now), Factor(s.Count(k, team, now)); got != want {
					t.Fatalf("%s of %s at %s: %g, want %g", k, team, now, got, want)
				}
			}
		}
	}
}

var day = time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC)

// A machine is idle for as long as its rows say, wherever they lie in the slots of five minutes, and whenever one looks.
func TestFindWith_IdleTimeIsThatOfTheRows(t *testing.T) {
	t.Parallel()
	for second := range 300 {
		for _, c := range []struct {
			idle time.Duration
			want int
		}{{idleLeast - time.Second, 0}, {idleLeast + Slot, 1}} {
			f, from := newFleet(1, 1), day.Add(time.Duration(second)*time.Second)
			idles(f, "a", "m", from.Sub(day), c.idle)
			if got := FindWith(f.rows, &Settings{Until: from.Add(c.idle)}); len(got) != c.want {
				t.Errorf("idle from %v for %v: %d alerts, want %d", from, c.idle, len(got), c.want)
			}
		}
	}
}

// idles adds a machine of a team without a task.
func idles(f *fleet, team, name string, at, long time.Duration) {
	f.machine(Row{Team: team, Instance: name, Use: idleUse, Capacity: "on-demand"}, &skus[2], day.Add(at), day.Add(at+long))
}

func about(list []Alert) (names []string) {
	for _, a := range list {
		names = append(names, fmt.Sprintf("%s/%s %v", a.Team, a.About, a.Found.Sub(a.Since)))
	}
	slices.Sort(names)
	return names
}

func said1(team, name string, at time.Duration, confirmed bool) Answer {
	return Answer{Name: name, Kind: IdleMachine, Team: team, At: day.Add(at), Confirmed: confirmed}
}

// Dismissed incidents raise the threshold of their kind and team, from the answer on. Other teams, other kinds and
// the past stay as they are. The alerts of one machine a day are at 45 min · 1.25^n, in whole slots.
func TestFindWith_AnswersMoveTheThresholdOfTheirKindAndTeamFromThenOn(t *testing.T) {
	f := newFleet(1, 1)
	for i := range 4 {
		for _, team := range []string{"a", "b"} {
			idles(f, team, fmt.Sprintf("%s%d", team, i), time.Duration(24*i)*time.Hour, 3*time.Hour)
		}
	}
	s := Settings{Answers: []Answer{said1("a", "x", 12*time.Hour, false), said1("a", "y", 36*time.Hour, false),
		{Name: "z", Kind: OrphanVolume, Team: "b", At: day.Add(time.Hour)},
		said1("a", "y", 60*time.Hour, true)}} // a second thought: it replaces the first
	got := about(FindWith(f.rows, &s))
	// each ended alert counts as no usual idle time, so 45 min alone decides: 45, 56.25, 70.31, 45 (one of each)
	want := []string{"a/a0 45m0s", "a/a1 1h0m0s", "a/a2 1h15m0s", "a/a3 45m0s", "b/b0 45m0s", "b/b1 45m0s", "b/b2 45m0s", "b/b3 45m0s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, a := range FindWith(f.rows, &s) {
		if long := a.Found.Sub(a.Since).Minutes(); a.Factor*45 > long || a.Factor*45 < long-5 {
			t.Errorf("%s: the factor %g, and found after %g min", a.About, a.Factor, long)
		}
	}
	s.Answers = []Answer{said1("a", "x", time.Hour, false)} // while a0 is open
	if list := FindWith(f.rows, &s); list[0].Until.Sub(list[0].Since) != 3*time.Hour {
		t.Errorf("the answer ended the incident: %+v", list[0])
	}
	names := map[string]bool{}
	for _, a := range FindWith(f.rows, &s) {
		names[a.Name()] = true
	}
	if len(names) != 8 {
		t.Errorf("8 incidents have %d names", len(names))
	}
}

// A plan marks what begins in its span within its scope, and its rows count as planned: no rule compares them.
func TestFindWith_APlanCoversItsScopeAndSpanAlone(t *testing.T) {
	f := newFleet(1, 1)
	idles(f, "a", "in", 2*time.Hour, 2*time.Hour)
	idles(f, "a", "late", 30*time.Hour, 2*time.Hour)
	idles(f, "b", "other", 2*time.Hour, 2*time.Hour)
	plan := Plan{Team: "a", Since: day.Add(time.Hour), Until: day.Add(4 * time.Hour)}
	for _, c := range []struct {
		change func(*Plan)
		want   string
	}{{func(*Plan) {}, "in"}, {func(p *Plan) { p.Team = "" }, "in other"}, {func(p *Plan) { p.Project = "q" }, ""},
		{func(p *Plan) { p.Job = "j" }, ""}, {func(p *Plan) { p.Job = "in" }, "in"}, {func(p *Plan) { p.Until = day.Add(2 * time.Hour) }, ""},
		{func(p *Plan) { p.Until = day.Add(48 * time.Hour) }, "in late"}} {
		p := plan
		c.change(&p)
		var marked []string
		for _, a := range FindWith(f.rows, &Settings{Plans: []Plan{p}}) {
			if a.Planned {
				marked = append(marked, a.About)
			}
		}
		slices.Sort(marked)
		if got := strings.Join(marked, " "); got != c.want {
			t.Errorf("%+v marks %q, want %q", p, got, c.want)
		}
	}

	g := newFleet(7, 30)
	g.usual("a", 1, flat)
	before := len(Find(g.rows))
	at := g.start.AddDate(0, 0, 20).Add(9 * time.Hour)
	g.planned(at)
	for i := range g.rows {
		g.rows[i].Planned = false
	}
	if len(Find(g.rows)) <= before {
		t.Fatal("a run that nobody has planned raises no alert")
	}
	list := FindWith(g.rows, &Settings{Plans: []Plan{{Team: "a", Job: "big", Since: at.Add(-time.Hour), Until: at.Add(100 * time.Hour)}}})
	open := slices.DeleteFunc(list, func(a Alert) bool { return a.Planned })
	if len(open) > before {
		t.Errorf("%d alerts, and %d without the planned run: %+v", len(open), before, open)
	}
}

// A storm of retries is marked where the plan covers each of its jobs.
func TestFindWith_APlanCoversInterruptionsOfItsJobs(t *testing.T) {
	f := newFleet(1, 1)
	for try := range 8 {
		begin := day.Add(time.Duration(10*try) * time.Minute)
		f.machine(Row{Team: "a", Project: "p", Group: "g", Job: "j", Attempt: fmt.Sprint(try), Instance: f.id("i"), Use: idleUse, Capacity: "spot"},
			&skus[0], begin, begin.Add(5*time.Minute))
	}
	for _, p := range []Plan{{Job: "j"}, {Job: "g"}, {Project: "p"}, {Team: "a"}, {Job: "k"}, {Project: "q"}, {Team: "b"}} {
		p.Since, p.Until = day, day.Add(24*time.Hour)
		list := FindWith(f.rows, &Settings{Plans: []Plan{p}})
		if len(list) != 1 || list[0].Kind != Interruptions || list[0].Planned != (p.Job == "j" || p.Job == "g" || p.Project == "p" || p.Team == "a") {
			t.Errorf("%+v: %+v", p, list)
		}
	}
}

// An incident ends when it costs nothing any more, though no later row shows that; without a present it goes on.
func TestFind_EndsAnIncidentThatCostsNothingAnyMore(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	row := Row{Begin: begin, End: begin.Add(2 * time.Hour), Amount: money.Picos(4e12), Currency: "USD", Category: ledger.Compute,
		Price: rate(2), Use: ledger.Idle, Machine: true, Team: "vision", Instance: "i-1", Provider: "p", Region: "r", SKU: "m", Capacity: "spot"}
	for after, ended := range map[time.Duration]bool{0: false, 3 * time.Hour: true, 48 * time.Hour: true} {
		s := &Settings{}
		if after > 0 {
			s.Until = begin.Add(after)
		}
		list := FindWith([]Row{row}, s)
		if len(list) != 1 || list[0].Kind != IdleMachine || list[0].Until.IsZero() == ended {
			t.Fatalf("%v later: %+v", after, list)
		}
		if ended && !list[0].Until.Equal(row.End) {
			t.Errorf("it ended %v, and its last cost %v", list[0].Until, row.End)
		}
	}
}

// A kind is found by its name, with hyphens or spaces.
func TestKindOf_TakesHyphens(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds {
		for _, text := range []string{string(k), strings.ReplaceAll(string(k), " ", "-"), strings.ToUpper(string(k))} {
			if got, ok := KindOf(text); !ok || got != k {
				t.Errorf("%s is %s", text, got)
			}
		}
	}
	if k, ok := KindOf("nothing"); ok {
		t.Errorf("nothing is %s", k)
	}
}
