package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/feed"
	"scrimp/internal/test/must"
)

// A seller is a provider with one offer, for a dollar an hour, that answers no launch.
type seller struct {
	deaf
	offer market.Offer
}

func (s seller) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	return []market.Offer{s.offer}, []market.Quote{{Offer: s.offer.ID, Rate: 1e12, Priced: true, Available: true,
		At: time.Now()}}, nil
}

// The second machine finds half of its input in its cache. The amounts are those of the published charges: 2 cents for
// each gigabyte that leaves the region for another one of the continent.
func TestDataUse_PricesWhatWasReadAndSaved(t *testing.T) {
	t.Parallel()
	offer := market.Offer{ID: "aws/us-west-2a/m/on-demand", Provider: "aws", Region: "us-west-2", Zone: "us-west-2a",
		Machine: "m", Capacity: market.OnDemand, Currency: money.USD, CPUs: 8, Memory: 1 << 40}
	w := newWorldOf(t, seller{offer: offer}, nil)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"train","data":[
		{"name":"corpus","path":"s3://b/corpus","size":"200GB","region":"us-east-1"},
		{"name":"words","path":"s3://b/words"}]}}`, nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation("j.1"); return asked })
	var at time.Time
	w.control.Read(func(m *core.Machine) { at = m.Now() })
	var events []core.Event
	tell := func(after time.Duration, b core.Body) {
		events = append(events, core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b})
	}
	tell(0, core.LaunchDone{Launch: "j.1", Instance: "i-1", Offer: offer.ID, Rate: 1e12, From: at})
	tell(time.Second, core.AgentClaimed{Attempt: "j.1"})
	tell(time.Hour, core.AttemptStarted{Attempt: "j.1", Message: 1, Data: []core.DataRead{
		{Name: "corpus", Files: 10, Bytes: 200e9, Hits: 5, HitBytes: 50e9, Fetched: 150e9, Requests: 6, Took: time.Minute},
		{Name: "words", Files: 1, Bytes: 3e9, Fetched: 3e9, Requests: 2, Took: time.Second}}})
	tell(2*time.Hour, core.AttemptEnded{Attempt: "j.1", Message: 2, Reason: "completed"})
	tell(2*time.Hour, core.InstanceEnded{Instance: "i-1", Until: at.Add(2 * time.Hour), Cause: "terminated"})
	must.Do(t, w.control.Propose(t.Context(), events...))
	var u client.DataUse
	w.must("GET", "/v1/jobs/j/data", nil, &u)
	if len(u.Reads) != 2 || u.Cost == nil || u.Saved == nil {
		t.Fatalf("%+v", u)
	}
	// By hand: 150 GB × $0.02 = $3, and 50 GB × $0.02 = $1. The region of the second input is unknown, so is its price.
	if got := fmt.Sprint(u.Cost, u.Saved, u.UnpricedFetched, u.Requests, u.Seconds, u.Reads[1].Cost); got !=
		"3 1 3000000000 8 61 <nil>" {
		t.Errorf("%s", got)
	}
	if r := u.Reads[0]; r.Path != "s3://b/corpus" || r.Region != "us-west-2" || r.Instance != "i-1" || r.HitBytes != 50e9 {
		t.Errorf("%+v", r)
	}
	var r client.Receipt
	w.must("GET", "/v1/jobs/j/receipt", nil, &r)
	if r.Data == nil || *r.Data.Cost != *u.Cost || len(r.Data.Reads) != 2 {
		t.Errorf("the receipt has %+v", r.Data)
	}
	// The machine cost $2 for two hours, and reading $3 besides. Only the priced input is posted.
	if got := fmt.Sprint(r.Ledger.Agrees, r.Cost, r.Categories["compute"], r.Categories["transfer"], r.BillExtras,
		r.CostWithoutRules); got != "true 5 2 3 map[data:3] 2" {
		t.Errorf("the receipt says %s", got)
	}
	w.must("GET", "/v1/ledger/verify", nil, nil)
	posted := 0
	for p, err := range w.store.Postings(t.Context(), "default", "j") {
		must.Do(t, err)
		if p.Category != ledger.Transfer {
			continue
		}
		posted++
		want := p.Amount.Float() - float64(p.Quantity.Whole)/1e9*p.Price.Rate.Float()
		if p.From != ledger.Payable("aws") || p.Region != "us-east-1" || p.Unit != ledger.ByteUnit || p.Owner.Attempt != "j.1" ||
			p.Owner.Instance != "" || p.Quantity != ledger.Bytes(150e9) || want != 0 {
			t.Errorf("%+v", p)
		}
	}
	if posted != 1 {
		t.Errorf("%d postings for reading, want one", posted)
	}
}

// An input that fails to arrive was read all the same, and is posted once.
func TestDataUse_PostsReadingOfAProgramThatNeverRan(t *testing.T) {
	t.Parallel()
	offer := market.Offer{ID: "aws/us-west-2a/m/on-demand", Provider: "aws", Region: "us-west-2", Zone: "us-west-2a",
		Machine: "m", Capacity: market.OnDemand, Currency: money.USD, CPUs: 8, Memory: 1 << 40}
	w := newWorldOf(t, seller{offer: offer}, nil)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"train","data":[
		{"name":"corpus","path":"s3://b/corpus","size":"200GB","region":"us-east-1"}]}}`, nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation("j.1"); return asked })
	var at time.Time
	w.control.Read(func(m *core.Machine) { at = m.Now() })
	event := func(after time.Duration, b core.Body) core.Event {
		return core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b}
	}
	ended := core.AttemptEnded{Attempt: "j.1", Message: 1, Reason: "data", Data: []core.DataRead{
		{Name: "corpus", Files: 1, Bytes: 1e9, Fetched: 1_000_000_007, Requests: 2}}}
	must.Do(t, w.control.Propose(t.Context(), event(0, core.LaunchDone{Launch: "j.1", Instance: "i-1", Offer: offer.ID,
		Rate: 1e12, From: at}), event(time.Second, core.AgentClaimed{Attempt: "j.1"}), event(time.Minute, ended)))
	again := ended
	again.Message = 2
	must.Do(t, w.control.Propose(t.Context(), event(2*time.Minute, again)))
	var r client.Receipt
	w.must("GET", "/v1/jobs/j/receipt", nil, &r)
	if got := r.Categories["transfer"]; got.String() != "0.02000000014" || !r.Ledger.Agrees { // 1,000,000,007 × 2e-11
		t.Errorf("reading cost %v, %+v", got, r.Ledger)
	}
}

// A submission reads the server's own prices of transfer only for a job with inputs: they are in a file.
func TestSubmission_WithoutInputsReadsNoPrices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := os.Mkdir(filepath.Join(w.opts.Dir, feed.PricesName), 0o700); err != nil { // it cannot be read
		t.Fatal(err)
	}
	const unread = "own prices of transfer do not count"
	w.must("POST", "/v1/jobs", `{"spec":{"name":"plain","command":"train"}}`, nil)
	if strings.Contains(w.log.String(), unread) {
		t.Errorf("without inputs: %s", w.log)
	}
	w.must("POST", "/v1/jobs", `{"spec":{"name":"reads","command":"train","data":[
		{"path":"s3://b/corpus","size":"200GB","region":"us-east-1"}]}}`, nil)
	if !strings.Contains(w.log.String(), unread) {
		t.Errorf("with an input: %s", w.log)
	}
}

// A machine that is interrupted while it reads its inputs has reported nothing: what it read is unknown, and not zero.
func TestDataUse_CountsMachinesWithoutReport(t *testing.T) {
	t.Parallel()
	offer := market.Offer{ID: "aws/us-west-2a/m/on-demand", Provider: "aws", Region: "us-west-2", Zone: "us-west-2a",
		Machine: "m", Capacity: market.OnDemand, Currency: money.USD, CPUs: 8, Memory: 1 << 40}
	w := newWorldOf(t, seller{offer: offer}, nil)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"train","data":[
		{"name":"corpus","path":"s3://b/corpus","size":"200GB","region":"us-east-1"}]}}`, nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation("j.1"); return asked })
	var at time.Time
	w.control.Read(func(m *core.Machine) { at = m.Now() })
	event := func(after time.Duration, b core.Body) core.Event {
		return core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b}
	}
	unreported := func() int64 {
		var u client.DataUse
		w.must("GET", "/v1/jobs/j/data", nil, &u)
		if len(u.Reads) != 0 || u.Cost != nil {
			t.Errorf("%+v", u)
		}
		return u.Unreported
	}
	must.Do(t, w.control.Propose(t.Context(),
		event(0, core.LaunchDone{Launch: "j.1", Instance: "i-1", Offer: offer.ID, Rate: 1e12, From: at}),
		event(time.Second, core.AgentClaimed{Attempt: "j.1"})))
	if n := unreported(); n != 0 {
		t.Errorf("while it reads: %d", n)
	}
	must.Do(t, w.control.Propose(t.Context(),
		event(time.Minute, core.InstanceEnded{Instance: "i-1", Until: at.Add(time.Minute), Cause: "interrupted"})))
	if n := unreported(); n != 1 {
		t.Errorf("after the interruption: %d, want 1", n)
	}
	var r client.Receipt
	w.must("GET", "/v1/jobs/j/receipt", nil, &r)
	if r.Data == nil || r.Data.Unreported != 1 {
		t.Errorf("the receipt has %+v", r.Data)
	}
}

// What a program has streamed counts at its end: posted once, beside what was brought before it began. A machine that is
// interrupted in the middle has reported nothing of its streams.
func TestDataUse_CountsStreamsAtTheEnd(t *testing.T) {
	t.Parallel()
	offer := market.Offer{ID: "aws/us-west-2a/m/on-demand", Provider: "aws", Region: "us-west-2", Zone: "us-west-2a",
		Machine: "m", Capacity: market.OnDemand, Currency: money.USD, CPUs: 8, Memory: 1 << 40}
	for _, interrupted := range []bool{false, true} {
		w := newWorldOf(t, seller{offer: offer}, nil)
		w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"train","data":[
			{"name":"corpus","path":"s3://b/corpus","size":"200GB","region":"us-east-1"},
			{"name":"shards","path":"s3://b/shards","size":"200GB","region":"us-east-1","stream":true}]}}`, nil)
		w.until(func(m *core.Machine) bool { _, asked := m.Allocation("j.1"); return asked })
		var at time.Time
		w.control.Read(func(m *core.Machine) { at = m.Now() })
		event := func(after time.Duration, b core.Body) core.Event {
			return core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b}
		}
		end := core.Body(core.AttemptEnded{Attempt: "j.1", Reason: "completed",
			Data: []core.DataRead{{Name: "shards", Files: 1, Bytes: 50e9, Fetched: 50e9}}})
		if interrupted {
			end = core.InstanceEnded{Instance: "i-1", Until: at.Add(time.Minute), Cause: "interrupted"}
		}
		must.Do(t, w.control.Propose(t.Context(),
			event(0, core.LaunchDone{Launch: "j.1", Instance: "i-1", Offer: offer.ID, Rate: 1e12, From: at}),
			event(time.Second, core.AgentClaimed{Attempt: "j.1"}),
			event(2*time.Second, core.AttemptStarted{Attempt: "j.1",
				Data: []core.DataRead{{Name: "corpus", Files: 1, Bytes: 150e9, Fetched: 150e9}}}),
			event(time.Minute, end)))
		var u client.DataUse
		w.must("GET", "/v1/jobs/j/data", nil, &u)
		// By hand: $0.02 for 1e9 bytes to another region, so $3 at the start and $1 at the end.
		reads, cost, unreported := 2, money.Picos(4e12), int64(0)
		if interrupted {
			reads, cost, unreported = 1, money.Picos(3e12), 1
		}
		if len(u.Reads) != reads || u.Cost == nil || u.Cost.Cmp(cost) != 0 || u.Unreported != unreported {
			t.Errorf("interrupted %t: %d reads cost %v, %d unreported", interrupted, len(u.Reads), u.Cost, u.Unreported)
		}
		var posted money.Amount
		w.control.Read(func(m *core.Machine) { posted = m.State().Job("j").Spent(at.Add(2 * time.Second)) })
		if posted.Cmp(cost) < 0 {
			t.Errorf("interrupted %t: it has spent %v, want at least %v", interrupted, posted, cost)
		}
	}
}
