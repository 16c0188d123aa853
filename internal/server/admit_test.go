package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/budget"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// 64 clients submit and end jobs under one limit, singly and in batches. The limit is never exceeded, although
// commits overlap, and at the end nothing is held.
func TestSubmissions_InSharedTransactionsNeverExceedALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(100), Jobs: new(9)})
	var all sync.WaitGroup
	var let, refused, now atomic.Int64
	for c := range 64 {
		all.Go(func() {
			for i := range 6 {
				n, path, body := int64(1), "/v1/jobs", costing(fmt.Sprintf("j-%d-%d", c, i), "a", `,"budget":{"dollars":"12"}`)
				if c%4 == 0 {
					n, path = 2, "/v1/jobs/batch"
					body = "[" + body + "," + costing(fmt.Sprintf("k-%d-%d", c, i), "a", `,"budget":{"dollars":"12"}`) + "]"
				}
				rec, _ := w.ask("POST", path, auth.OwnerName, body)
				switch rec.Code {
				case 200:
					let.Add(n)
					if at := now.Add(n); at > 8 {
						t.Errorf("%d jobs of $12 are let in under $100", at)
					}
				case http.StatusPaymentRequired:
					refused.Add(1)
					continue
				default:
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
				var b api.Budgets
				w.must("GET", "/v1/budgets", nil, &b)
				if u := b.Limits[0].Use; u.Spent.Add(u.Held).Cmp(*dollars(100)) > 0 || u.Jobs > 8 {
					t.Errorf("%+v", u)
				}
				now.Add(-n) // before they end, so that it is never too high
				for _, kind := range []string{"j", "k"}[:n] {
					w.must("POST", fmt.Sprintf("/v1/jobs/%s-%d-%d/end", kind, c, i), api.End{}, nil)
				}
			}
		})
	}
	all.Wait()
	var b api.Budgets
	w.must("GET", "/v1/budgets", nil, &b)
	if u := b.Limits[0].Use; u.Jobs != 0 || u.Held.Sign() != 0 {
		t.Errorf("when all are over: %+v", u)
	}
	if let.Load() < 8 || refused.Load() == 0 {
		t.Errorf("%d let in, %d refused: nothing was at stake", let.Load(), refused.Load())
	}
}

// Either all jobs of a batch are admitted or none, and each counts those before it. A refused batch is not in the
// log, so its key can be used again.
func TestBatch_IsAdmittedAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "all", Window: budget.Month, Dollars: dollars(10)})
	one := func(name string) string {
		return strings.Replace(costing(name, "", `,"budget":{"dollars":"4"}`), "{", `{"key":"`+name+`",`, 1)
	}
	rec, p := w.ask("POST", "/v1/jobs/batch", auth.OwnerName, "["+one("a")+","+one("b")+","+one("c")+"]")
	if rec.Code != http.StatusPaymentRequired || p.Field != "[2].budget" || p.Limit == nil {
		t.Errorf("three jobs of $4 under $10: %d %+v", rec.Code, p)
	}
	var b api.Budgets
	if w.must("GET", "/v1/budgets", nil, &b); b.Limits[0].Use.Jobs != 0 {
		t.Errorf("%+v of a batch that was refused", b.Limits[0].Use)
	}
	for _, names := range [][]string{{"a", "b"}, {"b", "a"}} { // the second time they exist
		if rec, p := w.ask("POST", "/v1/jobs/batch", auth.OwnerName, "["+one(names[0])+","+one(names[1])+"]"); rec.Code != 200 {
			t.Errorf("two of them: %d %+v", rec.Code, p)
		}
	}
	if w.must("GET", "/v1/budgets", nil, &b); b.Limits[0].Use.Held != *dollars(8) {
		t.Errorf("held %v, want $8", b.Limits[0].Use.Held)
	}
	for r := range w.eachRecord(t) {
		if _, facts, err := replay.Decode(r); err != nil || strings.Contains(fmt.Sprintf("%T", facts), "JobRefused") {
			t.Errorf("%v: %+v", err, facts)
		}
	}
}

// The data folder's owner is a user, too, although events do not name them.
func TestLimit_OfTheOwnerAppliesToTheirJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "user:owner", Window: budget.Month, Jobs: new(1)})
	for _, want := range []int{http.StatusOK, http.StatusForbidden} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("j", "", "")); rec.Code != want {
			t.Errorf("%d %+v, want %d", rec.Code, p, want)
		}
	}
}
