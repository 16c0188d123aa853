package state

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// Jobs of one file share the memory of their tags, texts and decisions, whether they were submitted or restored,
// and each still has the right values.
func TestShares_EqualValuesShareMemory(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	terms := func(i int) Terms {
		o := ledger.Owner{Tenant: string([]byte("default")), Team: string([]byte("vision")), Tags: map[string]string{"env": "dev"}}
		if i == 2 {
			o.Tags = map[string]string{"env": "prod"}
		}
		o.Job = fmt.Sprint("j", i)
		return Terms{Name: o.Job, Owner: o, Currency: money.USD, Priority: 1, Nodes: 1}
	}
	s := New()
	for i := range 4 {
		e := &Event{At: now, Schema: Schema, Tenant: "default", Body: JobSubmitted{Job: fmt.Sprint("j", i), Terms: terms(i)}}
		s.Begin(e)
		s.Apply(e, JobQueued{Job: fmt.Sprint("j", i)})
		d := plan.Decision{Why: plan.Reason("waits"), Rejected: []plan.Rejection{{Offer: "a", Why: "costs_more"}}}
		if i == 3 {
			d.Rejected[0].Offer = "b"
		}
		s.Apply(e, Decided{Job: fmt.Sprint("j", i), Decision: d})
	}
	text, err := s.Snapshot()
	must.Do(t, err)
	restored, err := Restore(text)
	must.Do(t, err)
	for name, s := range map[string]*State{"submitted": s, "restored": restored} {
		jobs := s.Jobs()
		for i, j := range jobs {
			if want := terms(i); !reflect.DeepEqual(*j.Terms(), want) {
				t.Errorf("%s: job %d has the terms %+v, want %+v", name, i, *j.Terms(), want)
			}
			if unsafe.StringData(j.Terms().Name) != unsafe.StringData(j.ID()) {
				t.Errorf("%s: job %d keeps its name twice", name, i)
			}
			if i == 0 {
				continue
			}
			a, b := jobs[i-1], j
			if unsafe.StringData(a.Terms().Owner.Team) != unsafe.StringData(b.Terms().Owner.Team) {
				t.Errorf("%s: job %d keeps its team for itself", name, i)
			}
			one := reflect.ValueOf(a.Terms().Owner.Tags).Pointer() == reflect.ValueOf(b.Terms().Owner.Tags).Pointer()
			if one != maps.Equal(a.Terms().Owner.Tags, b.Terms().Owner.Tags) {
				t.Errorf("%s: job %d has tags in common with the one before: %v", name, i, one)
			}
			if one := a.r.Last == b.r.Last; one != (i < 3) {
				t.Errorf("%s: job %d has its decision in common with the one before: %v", name, i, one)
			}
		}
	}
}
