package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// firm sells one kind of machine on-demand, at a price with a nonzero last digit. Tests report the ends of its
// machines.
type firm struct {
	mu   sync.Mutex
	list []engine.Instance // all rented machines; tests report their ends
}

const firmRate = money.Rate(1_000_000_000_001) // dollars per hour

func (f *firm) Launch(_ context.Context, r engine.Request) ([]engine.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := slices.IndexFunc(f.list, func(i engine.Instance) bool { return i.Key == r.Key }); n >= 0 {
		return slices.Clone(f.list[n : n+1]), nil
	}
	f.list = append(f.list, engine.Instance{ID: "i-" + r.Key, Key: r.Key, Offer: r.Offer, State: engine.Running,
		Launched: time.Now().UTC(), Rate: firmRate})
	return slices.Clone(f.list[len(f.list)-1:]), nil
}
func (f *firm) List(context.Context) ([]engine.Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list), nil
}
func (*firm) Terminate(context.Context, string) error { return nil }
func (*firm) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	o := market.Offer{ID: "firm", Provider: "firm", Region: "r", Zone: "r-a", Capacity: market.OnDemand, CPUs: 4,
		Memory: 1 << 30, Currency: money.USD, Speed: 1}
	return []market.Offer{o}, []market.Quote{{Offer: "firm", At: time.Now().UTC(), Rate: firmRate, Priced: true,
		Available: true}}, nil
}

// event passes an event to the core, at a time after now.
func (w *world) event(body core.Body, after time.Duration) {
	w.t.Helper()
	must.Do(w.t, w.control.Propose(w.t.Context(), core.Event{At: w.control.Now().Add(after), Schema: core.Schema,
		Tenant: w.control.Tenant(), Actor: "server", Body: body}))
}

// booting waits until n attempts hold a machine, and returns them in order.
func (w *world) booting(n int) []string {
	w.t.Helper()
	for {
		changed := w.control.Changed()
		var list []string
		w.control.Read(func(m *core.Machine) {
			for _, a := range m.Live() {
				if a.Instance() != "" {
					list = append(list, a.ID())
				}
			}
		})
		if len(list) >= n {
			return list
		}
		select {
		case <-changed:
		case <-time.After(eventually.Limit):
			w.t.Fatalf("only %v hold a machine, want %d", list, n)
		}
	}
}

func TestCosts_AddUpToTheLedgerExactly(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	for i := range 9 {
		team, project, ticket := fmt.Sprintf("team-%d", i%2), fmt.Sprintf("p%d", i%3), fmt.Sprint(i%4)
		w.must("POST", "/v1/jobs",
			fmt.Sprintf(`{"spec":{"name":"j%d","command":"true","team":%q,"project":%q,"environment":"env-%d","tags":{"ticket":%q}}}`, i,
				team, project, i%2, ticket), nil)
	}
	asked := w.booting(4)
	check := func() {
		t.Helper()
		for _, by := range []string{"team", "project", "user", "kind", "job", "environment", "model_version", "tag:ticket", "tag:none"} {
			var v api.Costs
			var spent, want money.Amount
			for before := uint64(0); ; { // machines arrive meanwhile, billed from the request on: both must be of one state
				w.control.Read(func(m *core.Machine) { before = m.Seq() })
				v, spent, want = api.Costs{}, money.Amount{}, money.Amount{}
				w.must("GET", "/v1/costs?by="+by, nil, &v)
				posted, err := ledger.Totals(w.store.Postings(t.Context(), "default", ""), ledger.ByTenant)
				must.Do(t, err)
				for _, a := range posted {
					want = want.Add(a)
				}
				after := uint64(0)
				w.control.Read(func(m *core.Machine) {
					after = m.Seq()
					for _, a := range m.Live() {
						want = want.Add(a.Cost(v.Until).Sub(a.Posted()))
					}
				})
				if before == after {
					break
				}
			}
			for _, l := range v.Lines {
				var uses money.Amount
				for _, a := range l.Uses {
					uses = uses.Add(a)
				}
				if uses != l.Spent {
					t.Errorf("by %s: the uses of %q are %v, spent %v", by, l.Name, uses, l.Spent)
				}
				spent = spent.Add(l.Spent)
			}
			if names := len(v.Lines); by == "environment" && names < 2 || by == "model_version" && names != 1 {
				t.Errorf("by %s there are %d lines", by, names)
			}
			if spent != want || want.Sign() <= 0 {
				t.Errorf("by %s: %v, the ledger has %v", by, spent, want)
			}
		}
	}
	check()
	for n, id := range asked {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Hour)
		if n%2 == 0 {
			w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, time.Hour+time.Minute)
			w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(time.Hour + 2*time.Minute),
				Cause: "terminated"}, time.Hour+3*time.Minute)
		}
	}
	check()
	var v api.Costs
	w.must("GET", "/v1/costs", nil, &v)
	compared := 0
	for _, l := range v.Lines {
		if compared += l.Compared; l.Compared > 0 && (l.OnDemand == nil || l.Saved == nil) ||
			l.Uses[client.Open].Sign() < 0 || l.Spent.Sign() <= 0 {
			t.Errorf("%+v", l)
		}
	}
	if compared != 2 {
		t.Errorf("%d jobs are compared with on-demand, want the 2 that succeeded: %+v", compared, v.Lines)
	}
	w.must("GET", "/v1/costs?since=1s", nil, &v)
	for _, l := range v.Lines {
		if l.Jobs != l.Live || l.Compared != 0 {
			t.Errorf("within the last second: %+v", l)
		}
	}
}

func TestCosts_OmitOtherTeams(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "team-0", Role: identity.Viewer})
	w.must("POST", "/v1/jobs", aJob("a", "team-1"), nil)
	w.booting(1)
	rec, _ := w.ask("GET", "/v1/costs", ann, nil)
	if rec.Code != 200 || strings.Contains(rec.Body.String(), "team-1") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for _, bad := range []string{"by=colour", "by=tag:", "since=7", "since=-1h"} {
		if rec, p := w.ask("GET", "/v1/costs?"+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field == "" || p.Fix == "" {
			t.Errorf("%s: %d %+v", bad, rec.Code, p)
		}
	}
}

// Costs by what was bought equal, name for name and to the last digit, a plain sum of the ledger's postings, with the
// lines of an engine's bill among them.
func TestCosts_ByWhatWasBoughtEqualThePostings(t *testing.T) {
	t.Parallel()
	w, _ := ranWorld(t)
	end := w.control.Now().Add(9 * time.Hour)
	w.event(core.AttemptEnded{Attempt: "runs.1", Message: 9, Reason: "completed", Step: 400}, 9*time.Hour)
	w.event(core.InstanceEnded{Instance: w.instance("runs.1"), Until: end, Cause: "terminated"}, 9*time.Hour)
	least := map[string]int{"category": 2, "sku": 2}
	for by, name := range map[string]func(p ledger.Posting) string{
		"category": func(p ledger.Posting) string { return string(p.Category) },
		"region":   func(p ledger.Posting) string { return p.Region },
		"sku":      func(p ledger.Posting) string { return p.SKU },
		"provider": func(p ledger.Posting) string { return p.Provider },
	} {
		want := map[string]money.Amount{}
		for p, err := range w.store.Postings(t.Context(), "default", "") {
			must.Do(t, err)
			if _, _, ok := p.To.IsCost(); ok {
				want[name(p)] = want[name(p)].Add(p.Amount)
			}
			if _, _, ok := p.From.IsCost(); ok {
				want[name(p)] = want[name(p)].Sub(p.Amount)
			}
		}
		var costs client.Costs
		w.must("GET", "/v1/costs?by="+by, nil, &costs)
		got := map[string]money.Amount{}
		for _, l := range costs.Lines {
			got[l.Name] = l.Spent
		}
		if !maps.Equal(got, want) || len(want) < max(least[by], 1) {
			t.Errorf("by %s: %v\nthe postings add up to %v", by, got, want)
		}
	}
}
