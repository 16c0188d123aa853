package server

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// edited is a store whose log appears modified; false leaves a record out.
type edited struct {
	store.Replica
	by atomic.Pointer[func(*store.Record) bool] // nil: unmodified; atomic, since the view reads concurrently
}

func (e *edited) edit(by func(*store.Record) bool) { e.by.Store(&by) }

func (e *edited) read(records []store.Record, err error) ([]store.Record, error) {
	by := e.by.Load()
	if by == nil {
		return records, err
	}
	var kept []store.Record
	for _, r := range records {
		if (*by)(&r) {
			kept = append(kept, r)
		}
	}
	return kept, err
}

func (e *edited) Records(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	return e.read(e.Replica.Records(ctx, after, 1<<30))
}

func (e *edited) RecordsOf(ctx context.Context, kind string, after uint64, limit int) ([]store.Record, error) {
	return e.read(e.Replica.RecordsOf(ctx, kind, after, 1<<30))
}

func (e *edited) RecordsAt(ctx context.Context, numbers []uint64) ([]store.Record, error) {
	return e.read(e.Replica.RecordsAt(ctx, numbers))
}

func (e *edited) WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	return e.read(e.Replica.WholeRecords(ctx, after, 1<<30))
}

// ranWorld returns a world in which one job ran for more than two hours, was billed and has ended, and another runs.
func ranWorld(t *testing.T) (*world, *edited) {
	t.Helper()
	e := &edited{}
	w := newWorldOn(t, &firm{}, nil, func(s store.Replica) store.Replica { e.Replica = s; return e })
	w.must("POST", "/v1/jobs", aJob("over", ""), nil)
	w.must("POST", "/v1/jobs", aJob("runs", ""), nil)
	w.booting(2)
	begin := w.control.Now()
	at := func(after time.Duration, b core.Body) {
		w.t.Helper()
		event := core.Event{At: begin.Add(after), Schema: core.Schema, Tenant: "default", Actor: "server", Body: b}
		must.Do(t, w.control.Propose(t.Context(), event))
	}
	for i, a := range []string{"over.1", "runs.1"} {
		at(time.Minute, core.AttemptStarted{Attempt: a, Message: 1})
		for n := range int64(4) {
			loss := map[string]float64{"loss": 4 / float64(n+1)}
			at(time.Duration(i*10+int(n)+2)*time.Minute, core.Progressed{Attempt: a, Message: n + 2, Step: 100 * (n + 1),
				Metrics: loss})
		}
	}
	saved := core.CheckpointSaved{Attempt: "over.1", Message: 7, Manifest: "m", Step: 400,
		Captured: begin.Add(50 * time.Minute)}
	at(55*time.Minute, saved)
	at(time.Hour+time.Minute, core.UsageSeen{Attempt: "over.1", Message: 8, CPU: 1})
	at(2*time.Hour, core.AttemptEnded{Attempt: "over.1", Message: 9, Reason: "completed", Step: 400})
	machine := w.instance("over.1")
	at(2*time.Hour+time.Minute, core.InstanceEnded{Instance: machine, Until: begin.Add(2*time.Hour + time.Minute),
		Cause: "terminated"})
	at(3*time.Hour, core.BillReceived{Instance: machine, Launch: "over.1", Lines: []core.BillLine{
		{Amount: money.Picos(2_030_000_000_000), Currency: money.USD},
		{Rule: "minimum", Amount: money.Picos(5e10), Currency: money.USD},
		{Rule: "disk", Category: ledger.Storage, SKU: "gp3", Amount: money.Picos(7e9), Currency: money.USD, From: begin, To: begin.Add(2 * time.Hour)},
	}})
	return w, e
}

func TestVerify_ProvesTheLedgerFromTheLog(t *testing.T) {
	t.Parallel()
	w, e := ranWorld(t)
	verified := func() (v api.Verified) {
		w.must("GET", "/v1/ledger/verify", nil, &v)
		return v
	}
	sample := func(r *store.Record) bool { return !r.Sample }
	if v := verified(); !v.OK || v.Jobs != 2 || v.Postings < 8 || v.Cost.Sign() <= 0 {
		t.Fatalf("%+v", v)
	}
	if e.edit(sample); !verified().OK {
		t.Errorf("without samples: %+v", verified())
	}
	for name, edit := range map[string]func(*store.Record) bool{
		"a record is missing": func(r *store.Record) bool { return r.Kind != "attempt_ended" },
		"the end is missing":  func(r *store.Record) bool { return r.Kind != "bill_received" },
		"a machine ends later": func(r *store.Record) bool {
			if r.Kind == "instance_ended" {
				r.Facts = bytes.Replace(r.Facts, []byte(`"until":"20`), []byte(`"until":"21`), 1)
			}
			return true
		},
		"a price is another": func(r *store.Record) bool {
			r.Event = bytes.ReplaceAll(r.Event, []byte(`1.000000000001`), []byte(`1.000000000002`))
			return true
		},
		"an amount is another": func(r *store.Record) bool {
			for i := range r.Postings {
				r.Postings[i].Amount = r.Postings[i].Amount.Add(money.Picos(1))
			}
			return true
		},
		"a fact is twice": func(r *store.Record) bool {
			if r.Kind == "attempt_started" {
				r.Facts = append(append(r.Facts[:len(r.Facts)-1:len(r.Facts)-1], ','), r.Facts[1:]...)
			}
			return true
		},
		"another job succeeded": func(r *store.Record) bool {
			r.Facts = bytes.Replace(r.Facts, []byte(`"state":"succeeded"`), []byte(`"state":"stopped"`), 1)
			return true
		},
	} {
		e.edit(edit)
		if v := verified(); v.OK || v.Problem == "" {
			t.Errorf("%s, and the ledger is proved: %+v", name, v)
		} else {
			t.Logf("%s: %s", name, v.Problem)
		}
	}
}

// Pages work without information that only samples have.
func TestPages_WorkWithoutSamples(t *testing.T) {
	t.Parallel()
	w, e := ranWorld(t)
	var whole, short receipt.Receipt
	w.must("GET", "/v1/jobs/over/receipt", nil, &whole)
	if len(whole.Loss) != 4 || !whole.Ledger.Agrees || len(whole.Decisions) == 0 {
		t.Errorf("%d samples of its metric, decisions %v, %+v", len(whole.Loss), whole.Decisions, whole.Ledger)
	}
	if last := whole.Spend[len(whole.Spend)-1]; last.Amount != whole.Cost {
		t.Errorf("it is spent %v at the end, and cost %v", last.Amount, whole.Cost)
	}
	for i := range whole.Spend[1:] {
		if whole.Spend[i+1].Amount.Cmp(whole.Spend[i].Amount) < 0 {
			t.Errorf("what is spent falls: %v", whole.Spend)
		}
	}
	e.edit(func(r *store.Record) bool { return !r.Sample })
	w.must("GET", "/v1/jobs/over/receipt", nil, &short)
	if len(short.Loss) > 1 || short.Cost != whole.Cost || short.Step != 400 ||
		len(short.Decisions) != len(whole.Decisions) {
		t.Errorf("%+v", short)
	}
	if text := short.Text(80); strings.Contains(text, "loss ") || !strings.Contains(text, "succeeded") {
		t.Errorf("%s", text)
	}
	var list []api.Decision
	if w.must("GET", "/v1/jobs/over/explain", nil, &list); len(list) < 2 || list[1].Take != "firm" {
		t.Errorf("%+v", list)
	}
	var h api.History
	if w.must("GET", "/v1/history", nil, &h); len(h.Jobs) != 1 {
		t.Errorf("%+v", h)
	}
	var running receipt.Receipt
	if w.must("GET", "/v1/jobs/runs/receipt", nil, &running); !running.Ledger.Agrees || len(running.Tries) != 1 ||
		running.Tries[0].End != "running" {
		t.Errorf("%+v", running)
	}
}
