package core

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// hall is a machine with a queue, and a log of its decisions.
type hall struct {
	*Machine
	t        testing.TB
	at       time.Time
	launched []string // job names, in order
	looked   int
	wake     time.Time
}

func newHall(t testing.TB, running int) *hall {
	h := &hall{Machine: New(), t: t, at: dawn}
	cfg := DefaultConfig()
	cfg.MaxRunning = running
	h.tell(Configured{Config: cfg})
	return h
}

func (h *hall) tell(b Body) {
	out := h.Step(Event{At: h.at, Schema: Schema, Tenant: "default", Actor: "user:ann", Body: b})
	for _, a := range out.Actions {
		if l, ok := a.(Launch); ok {
			h.launched = append(h.launched, l.Job)
		}
	}
	h.looked += out.Decided
	h.wake = out.Wake
}

// submit submits a job with the given processors and priority.
func (h *hall) submit(id string, cpus, priority int) {
	h.tell(JobSubmitted{Job: id, Terms: Terms{Name: id, Owner: ledger.Owner{Team: "t"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: cpus}}, Currency: money.USD, Priority: priority, Saves: true, Nodes: 1}})
}

// sells offers a machine with the given number of processors.
func (h *hall) sells(cpus int, available bool) {
	id := market.OfferID(fmt.Sprint("m", cpus))
	h.tell(MarketSeen{
		Offers: []market.Offer{{ID: id, Provider: "p", Region: "r", Zone: "z", Machine: "m", CPUs: cpus, Memory: 1 << 30, Capacity: market.OnDemand, Currency: money.USD, Speed: 1}},
		Quotes: []market.Quote{{Offer: id, Rate: 1e12, Priced: true, Available: available, At: h.at}},
	})
}

// until advances time tick by tick until n jobs are launched, and returns the elapsed time.
func (h *hall) until(launches int) time.Duration {
	h.t.Helper()
	from := h.at
	for len(h.launched) < launches {
		if h.wake.IsZero() || h.at.Sub(from) > 24*time.Hour {
			h.t.Fatalf("after %v %d of %d are launched, and nothing is to come", h.at.Sub(from), len(h.launched), launches)
		}
		h.at = h.wake
		h.tell(Tick{})
	}
	return h.at.Sub(from)
}

// A job that fits runs at once or a few tries later, no matter how many more urgent jobs fit nowhere.
func TestQueue_FindsAFittingJobBehindOthers(t *testing.T) {
	h := newHall(t, 10)
	h.sells(2, false)
	for i := range 20_000 {
		h.submit(fmt.Sprintf("large-%05d", i), 1000+i%40, 2)
	}
	for i := range 3 {
		h.submit(fmt.Sprint("fits-", i), 1, 1)
	}
	if len(h.launched) > 0 {
		t.Fatalf("%v run on a market that has nothing", h.launched)
	}
	h.at = h.at.Add(time.Hour)
	h.looked = 0
	h.sells(2, true)
	if took := h.until(3); took > 15*time.Second {
		t.Errorf("they waited %v more", took)
	}
	if fmt.Sprint(h.launched) != "[fits-0 fits-1 fits-2]" {
		t.Errorf("launched are %v", h.launched)
	}
	if h.looked > 40*queue.Alike+3 {
		t.Errorf("%d jobs were looked at", h.looked)
	}
	for range 100 {
		h.at = h.at.Add(time.Second)
		h.tell(Tick{})
	}
	if h.looked > 40*queue.Alike+3 {
		t.Errorf("%d jobs were looked at though nothing changed", h.looked)
	}
}

// Among skipped jobs the most urgent comes first once something fits them again.
func TestQueue_KeepsTheOrderOfSkippedJobs(t *testing.T) {
	h := newHall(t, 3)
	h.sells(2, false)
	for i := range 200 {
		h.submit(fmt.Sprintf("j-%03d", i), 2, 1)
	}
	h.submit("urgent", 2, 2)
	for range 5 {
		h.at = h.at.Add(time.Minute)
		h.sells(2, false)
	}
	h.submit("late", 2, 1)
	if j, _ := h.Job("late"); j.Why() != string(plan.NoCapacity) {
		t.Errorf("a job that comes to those that are passed over is told %q", j.Why())
	}
	text, err := h.Snapshot()
	must.Do(t, err)
	again, err := Restore(text)
	must.Do(t, err)
	h.at = h.at.Add(time.Minute)
	h.sells(2, true)
	if fmt.Sprint(h.launched) != "[urgent j-000 j-001]" {
		t.Errorf("launched are %v", h.launched)
	}
	h.Machine, h.launched = again, nil
	h.sells(2, true)
	if fmt.Sprint(h.launched) != "[urgent j-000 j-001]" {
		t.Errorf("after a restart launched are %v", h.launched)
	}
}

// An offer that refused a launch is tried again after its backoff, for any waiting job.
func TestQueue_RetriesAClassAfterARefusal(t *testing.T) {
	h := newHall(t, 1)
	for i := range 100 {
		h.submit(fmt.Sprintf("j-%03d", i), 2, 1)
	}
	h.sells(2, true)
	h.looked = 0
	h.tell(LaunchRefused{Launch: h.launched[0] + ".1", Reason: "no_capacity"})
	for range 10 {
		h.at = h.at.Add(time.Second)
		h.tell(Tick{})
	}
	looked := h.looked
	if took := h.until(2); took > DefaultConfig().CoolOff {
		t.Errorf("the next launch comes %v later", took)
	}
	if fmt.Sprint(h.launched) != "[j-000 j-000]" {
		t.Errorf("launched are %v", h.launched)
	}
	if looked > queue.Alike {
		t.Errorf("%d looks while the offer could not be asked", looked)
	}
}

// The queue groups jobs by equivalence class up to a limit. It tries the jobs of further classes one by one, and
// forgets none.
func TestQueue_TriesClassesBeyondTheLimitOneByOne(t *testing.T) {
	h := newHall(t, 1)
	h.sells(2, false)
	for i := range 2 * queue.MostGroups {
		h.submit(fmt.Sprintf("j-%04d", i), 1000+i, 2)
	}
	h.submit("fits", 2, 1)
	if n := len(h.queue.Queue.Equivalences); n > queue.MostGroups+1 {
		t.Errorf("%d equivalence classes are told apart", n)
	}
	text, err := h.Snapshot()
	must.Do(t, err)
	again, err := Restore(text)
	must.Do(t, err)
	if same, err := again.Snapshot(); err != nil || !bytes.Equal(text, same) || len(again.queue.Queue.Equivalences) != len(h.queue.Queue.Equivalences) {
		t.Errorf("a restart tells other equivalence classes apart: %v", err)
	}
	h.sells(2, true)
	h.until(1)
	for i := range 2 * queue.MostGroups {
		h.tell(JobEnded{Job: fmt.Sprintf("j-%04d", i)})
	}
	if n := len(h.queue.Queue.Equivalences); n != 0 {
		t.Errorf("%d equivalence classes are kept of no jobs", n)
	}
}

// A job's equivalence class covers all its requirements: jobs that differ in any are in different classes.
func TestEquivalenceOf_CoversEveryRequirement(t *testing.T) {
	seen := map[string]string{queue.EquivalenceOf(plan.Need{}): "nothing"}
	differs := func(name string, n plan.Need) {
		key := queue.EquivalenceOf(n)
		if other, known := seen[key]; known && key != queue.Loose {
			t.Errorf("%s is taken for %s", name, other)
		}
		seen[key] = name
	}
	value := func(f reflect.Value) {
		switch f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		case reflect.Float64:
			f.SetFloat(0.7)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Struct:
			f.Set(reflect.ValueOf(plan.Footprint{Machine: 7}))
		default:
			t.Fatalf("a field of kind %v is new here: add it to Need.Key", f.Kind())
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[plan.Need]()) {
		if f.IsExported() && !f.Anonymous {
			var n plan.Need
			value(reflect.ValueOf(&n).Elem().FieldByIndex(f.Index))
			differs(f.Name, n)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[plan.Requirements]()) {
		n := plan.Need{Variants: make([]plan.Variant, 1)}
		value(reflect.ValueOf(&n.Variants[0].Requirements).Elem().FieldByIndex(f.Index))
		differs("a variant's "+f.Name, n)
	}
	differs("two variants", plan.Need{Variants: make([]plan.Variant, 2)})
}
