package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/engine"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/terms"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// booking appends events with random postings to a log, at random intervals of hours, for existing jobs and for
// none. The core does not know of them: it provides the clock and the jobs' owners only.
type booking struct {
	*testing.T
	*Books
	log  store.Store
	rng  *rand.Rand
	seq  uint64
	at   time.Time
	head ledger.Hash
	all  []ledger.Posting
}

// open starts a log with the given number of waiting jobs.
func (b *booking) open(jobs int) {
	b.Helper()
	st, err := sqlite.Open(b.TempDir())
	must.Do(b, err)
	now := time.Now().UTC()
	c, err := control.New(b.Context(), st, nil, control.Config{Clock: engine.Clock{Wall: now, Market: now, Speed: 1},
		Silence: time.Hour, Log: slog.New(slog.DiscardHandler)})
	must.Do(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		_ = st.Close()
	})
	b.log, b.Books = st, &Books{Control: c, Log: st, Errors: slog.New(slog.DiscardHandler)}
	for i := range jobs {
		text := fmt.Sprintf(`{"name":"j%d","command":"true","team":"team-%d","project":"p%d","tags":{"ticket":"%d"}}`,
			i, i%3, i%2, i%4)
		j, err := spec.Decode([]byte(text))
		must.Do(b, err)
		wanted := terms.Of(j, c.Now(), c.Clock().Stretch, nil)
		wanted.Owner.Tenant = c.Tenant()
		must.Do(b, c.Propose(b.Context(), core.Event{At: c.Now(), Schema: core.Schema, Tenant: c.Tenant(), Actor: "user",
			Body: core.JobSubmitted{Job: fmt.Sprintf("j%d", i), Terms: wanted, Spec: []byte(text)}}))
	}
	if b.seq, err = st.End(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.at = c.Now()
}

func (b *booking) add(n int) {
	b.Helper()
	uses := []ledger.Use{ledger.Open, ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle}
	var jobs []*core.Job
	b.Control.Read(func(m *core.Machine) { jobs = slices.Collect(m.Jobs()) })
	for range n {
		b.seq++
		b.at = b.at.Add(time.Duration(b.rng.IntN(3)) * time.Duration(b.rng.Int64N(int64(2*time.Hour))))
		e := core.Event{At: b.at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: core.Tick{}}
		text, err := e.Append(nil, []byte("{}"))
		must.Do(b, err)
		r := store.Record{Seq: b.seq, Tenant: "default", At: b.at, Kind: "tick", Event: text}
		for range b.rng.IntN(4) {
			from, to := ledger.Payable("p"), ledger.Cost(ledger.Compute, uses[b.rng.IntN(len(uses))])
			switch b.rng.IntN(4) {
			case 0:
				from = ledger.Cost(ledger.Compute, ledger.Open)
			case 1:
				from, to = ledger.Invoice("p"), ledger.Payable("p")
			}
			p, ok := ledger.Move(money.Picos(b.rng.Int64N(9e15)-1e15), from, to)
			if !ok || from == to {
				continue
			}
			p.Event, p.Line, p.At, p.Currency = b.seq, len(r.Postings), b.at, []money.Currency{"USD", "EUR"}[b.rng.IntN(2)]
			if i := b.rng.IntN(len(jobs) + 1); i < len(jobs) {
				p.Owner = jobs[i].Terms().Owner
				p.Owner.Job = jobs[i].ID()
			} else {
				p.Owner.Team, p.Rule = []string{"", "team-0"}[b.rng.IntN(2)], "reserved"
			}
			p.Owner.Tenant = "default"
			sealed, head := ledger.Seal([]ledger.Posting{p}, b.head)
			b.head = head
			r.Postings = append(r.Postings, sealed...)
			b.all = append(b.all, sealed...)
		}
		must.Do(b, b.log.Append(b.Context(), []store.Record{r}))
	}
}

// walked computes the lines slowly, from all postings.
func (b *booking) walked(by string, since time.Time, see func(team string) bool) map[string]money.Amount {
	sums := map[string]money.Amount{}
	for _, p := range b.all {
		if p.At.Before(since) || !see(p.Owner.Team) {
			continue
		}
		name := map[string]string{"team": p.Owner.Team, "project": p.Owner.Project, "job": p.Owner.Job}[by]
		if key, ok := strings.CutPrefix(by, "tag:"); ok {
			name = p.Owner.Tags[key]
		}
		if (by == "user" || by == "kind") && p.Owner.Job != "" {
			name = map[string]string{"user": core.Owner, "kind": "experiment"}[by]
		}
		if name == "" && p.Rule == "reserved" {
			name = "(reserved, unused)"
		}
		for account, sign := range map[ledger.Account]bool{p.To: true, p.From: false} {
			_, use, ok := account.IsCost()
			if !ok {
				continue
			}
			k := fmt.Sprintf("%s %s %s", name, p.Currency, use)
			if sign {
				sums[k] = sums[k].Add(p.Amount)
			} else {
				sums[k] = sums[k].Sub(p.Amount)
			}
		}
	}
	maps.DeleteFunc(sums, func(_ string, a money.Amount) bool { return a.IsZero() })
	return sums
}

// asked returns the view's answer up to the end of the log, at a moment after it.
func (b *booking) asked(by string, since time.Time, c identity.Caller) map[string]money.Amount {
	b.Helper()
	name, _ := groupBy(by)
	l := &lines{name: name, caller: c, all: map[lineKey]*api.CostLine{}}
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	must.Do(b, b.spentTo(b.Context(), b.seq))
	must.Do(b, b.booked(b.Context(), l, by, since, b.seq))
	sums := map[string]money.Amount{}
	for k, line := range l.all {
		for u, a := range line.Uses {
			if !a.IsZero() {
				sums[fmt.Sprintf("%s %s %s", k.name, k.currency, u)] = a
			}
		}
	}
	return sums
}

// For every grouping, start time and caller, the kept sums equal a walk through all postings exactly: as the log
// grows, after a start that finds some sums written, and if those belong to another log.
func TestCosts_EqualAWalkThroughTheLedger(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(2, 20)) {
		b := &booking{T: t, rng: rand.New(rand.NewPCG(seed, 1))}
		b.open(12)
		end := b.seq
		b.spent.piece = 20
		all := identity.Caller{User: "owner", Grants: []identity.Grant{{Team: identity.Everywhere, Role: identity.Admin}}}
		ann := identity.Caller{User: "ann", Grants: []identity.Grant{{Team: "team-0", Role: identity.Viewer}}}
		check := func(when string) {
			t.Helper()
			for _, by := range []string{"team", "project", "user", "kind", "job", "tag:ticket", "tag:none"} {
				for _, since := range []time.Time{{}, b.at.Add(-90 * time.Minute), b.at.Add(-50 * time.Hour),
					b.all[b.rng.IntN(len(b.all))].At, b.at.Truncate(24 * time.Hour), b.at.Add(time.Hour)} {
					for c, sees := range map[string]func(string) bool{"owner": func(string) bool { return true },
						"ann": func(team string) bool { return team == "team-0" }} {
						caller := all
						if c == "ann" {
							caller = ann
						}
						if got, want := b.asked(by, since, caller), b.walked(by, since, sees); !maps.Equal(got, want) {
							t.Fatalf("seed %d, %s, %s asks by %s since %v: %v, a walk says %v", seed, when, c, by, since, got, want)
						}
					}
				}
			}
		}
		for range 3 {
			b.add(40)
			check("as it grows")
		}
		b.spent.sums.Forget(b.at.Add(-60 * time.Hour))
		check("where the hours of the days before are forgotten")
		kept := b.spent.kept
		if kept <= end {
			t.Fatalf("seed %d: no piece was written", seed)
		}
		b.spent.sums, b.spent.upTo = nil, 0
		check("after a start")
		if b.spent.kept != kept {
			t.Errorf("seed %d: the start found pieces up to event %d, %d were written", seed, b.spent.kept, kept)
		}
		text, _, _ := b.log.Meta(t.Context(), pieceName(0))
		var v map[string]any
		must.Do(t, json.Unmarshal([]byte(text), &v))
		v["hash"] = strings.Repeat("0", 64)
		other, _ := json.Marshal(v)
		must.Do(t, b.log.PutMeta(t.Context(), pieceName(0), string(other)))
		b.spent.sums, b.spent.upTo = nil, 0
		check("where a piece is of another log")
		b.add(10)
		check("as it grows again")
	}
}
