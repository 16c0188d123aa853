package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/limits"
)

// extreme puts numbers at the ends of their bounds into events.
type extreme struct {
	rng    *rand.Rand
	now    time.Time
	chance int // one in chance numbers is extreme
}

// of returns a copy of b with some extreme numbers.
func (x extreme) of(b Body) Body {
	v := reflect.New(reflect.TypeOf(b)).Elem()
	v.Set(reflect.ValueOf(b))
	x.stretch(v, nil)
	return v.Interface().(Body) //nolint:forcetypeassert // it was one
}

// stretch walks v; k is the kind of the number v.
func (x extreme) stretch(v reflect.Value, k *quantity.Kind) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(v.Elem())
		x.stretch(c.Elem(), k)
		v.Set(c)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			x.stretch(c.Index(i), k)
		}
		if !v.IsNil() {
			v.Set(c)
		}
	case v.Type() == reflect.TypeFor[map[string]float64]() && k != nil:
		c := map[string]float64{}
		for name := range v.Seq2() {
			c[name.String()] = x.float(k)
		}
		v.Set(reflect.ValueOf(c))
	case k != nil && v.CanSet():
		if x.rng.IntN(x.chance) == 0 {
			x.set(v, k)
		}
	case v.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "-" && len(f.Index) == 1 {
				x.stretch(v.FieldByIndex(f.Index), limits.KindOf(v.Type(), name, f.Type))
			}
		}
	}
}

func (x extreme) set(v reflect.Value, k *quantity.Kind) {
	switch v.Interface().(type) {
	case time.Time:
		at := []time.Time{{}, x.now, x.now.Add(quantity.Decade), x.now.Add(-1), x.now.Add(1), time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)}
		v.Set(reflect.ValueOf(at[x.rng.IntN(len(at))]))
		return
	case money.Amount:
		a, _ := money.Estimated(x.float(k))
		if x.rng.IntN(3) == 0 {
			a = money.Picos(1)
		}
		v.Set(reflect.ValueOf(a))
		return
	case money.Rate:
		v.SetInt([]int64{0, 1, int64(quantity.Price.Most * 1e12)}[x.rng.IntN(3)])
		return
	}
	switch {
	case v.CanInt():
		v.SetInt(quantity.Int(x.float(k)))
	case v.CanUint():
		v.SetUint(uint64(max(0, x.float(k))))
	case v.CanFloat():
		v.SetFloat(x.float(k))
	}
}

// float returns a number within the bounds of k, mostly at their ends.
func (x extreme) float(k *quantity.Kind) float64 {
	ends := []float64{k.Least, k.Most, k.Most / 2, 0, 1, math.SmallestNonzeroFloat64, k.Most * math.Exp(-40*x.rng.Float64())}
	f := ends[x.rng.IntN(len(ends))]
	return min(max(f, k.Least), k.Most)
}

// lively returns a plausible next event of a waiting or running job, or b.
func lively(m *Machine, rng *rand.Rand, at time.Time, b Body) Body {
	if rng.IntN(4) == 0 {
		return b
	}
	if m.Len() < 4 && rng.IntN(2) == 0 {
		return JobSubmitted{Job: fmt.Sprint("w", m.Seq()), Terms: Terms{Name: "w", Currency: money.USD, Restart: time.Minute, Grace: time.Minute,
			Owner: ledger.Owner{Team: "t"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Saves: true, Steps: 2000 * rng.Int64N(2),
			Work: time.Hour * time.Duration(rng.IntN(2)), Deadline: at.Add(3 * time.Hour), Priority: 1, Nodes: rng.IntN(3), MaxRetries: 1}}
	}
	for _, a := range sorted(m.State().Allocations(), (*state.Allocation).ID) {
		if rng.IntN(2) == 0 {
			return LaunchDone{Launch: a.ID(), Instance: fmt.Sprintf("i-%d", 100+m.Seq()), Offer: a.Machine().Offer, Rate: a.Rate(), From: at}
		}
	}
	for _, a := range sorted(m.State().Attempts(), (*Attempt).ID) {
		k, message := a.Tasks()[rng.IntN(len(a.Tasks()))], int64(m.Seq())
		node, step := k.Rank(), a.Step()+int64(rng.IntN(100))
		if rng.IntN(3) == 0 {
			continue
		}
		if k.Phase() != TaskRunning {
			return AttemptStarted{Attempt: a.ID(), Node: node, Message: message, Took: time.Second}
		}
		switch rng.IntN(9) {
		case 0:
			return CheckpointSaved{Attempt: a.ID(), Message: message, Manifest: fmt.Sprint("m-", message), Step: step, Bytes: 1 << 30, Uploaded: 1 << 29,
				Captured: at, Took: time.Minute}
		case 1:
			return UsageSeen{Attempt: a.ID(), Node: node, Message: message, CPU: 0.5, GPU: new(0.5)}
		case 2:
			return NoticeGiven{Attempt: a.ID(), Node: node, Message: message, Until: at.Add(time.Minute)}
		case 3:
			return AttemptEnded{Attempt: a.ID(), Node: node, Message: message, Reason: []string{"completed", "failed", "drained"}[rng.IntN(3)], Step: step}
		case 4:
			return InstanceEnded{Instance: k.Instance(), Until: at, Cause: "interrupted"}
		case 5:
			return BillReceived{Instance: k.Instance(), Launch: a.ID(), Lines: []BillLine{{Amount: money.Picos(rng.Int64N(3e12)), Currency: money.USD}}}
		case 6:
			c := Changes{Budget: new(money.Picos(rng.Int64N(9e12))), GPUHours: new(float64), WallClock: new(time.Duration), Deadline: new(at.Add(time.Hour))}
			return JobUpdated{Job: a.Job(), Changes: c}
		}
		return Progressed{Attempt: a.ID(), Message: message, Step: step, Total: 2000, Metrics: map[string]float64{"loss": rng.NormFloat64()}}
	}
	return b
}

// sorted returns a deterministic order.
func sorted[T any](all iter.Seq[T], id func(T) string) []T {
	return slices.SortedFunc(all, func(a, b T) int { return strings.Compare(id(a), id(b)) })
}

// For any numbers within their bounds, in any order, a step ends within a bounded number of rounds, the sums agree,
// and the log and the snapshot reproduce the state.
func TestStep_AcceptsEveryExtreme(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(2_000, 100_000)) {
		nonsense(t, seed, 30, true)
		if t.Failed() {
			t.Fatalf("repeat: nonsense(t, %d, 30, true)", seed)
		}
	}
}

// keepLog rewrites testdata/extremes.jsonl. Use it only once no log of an earlier release must be readable any
// more.
var keepLog = flag.Bool("keep-log", false, "write the kept log of extremes anew")

// A log of an earlier release with numbers at the ends of their bounds still gives the same sums.
func TestReplay_ReadsAnOlderLogOfExtremes(t *testing.T) {
	t.Parallel()
	const file = "testdata/extremes.jsonl"
	type line struct {
		Event    json.RawMessage  `json:"event"`
		Facts    json.RawMessage  `json:"facts,omitempty"`
		Postings []ledger.Posting `json:"postings,omitempty"`
	}
	sums := func(s *state.State) (text string) {
		for _, j := range s.Jobs() {
			text += fmt.Sprintf("%s %s %v; ", j.ID(), j.State(), j.Spent(s.Now()))
		}
		return text
	}
	if *keepLog {
		log, m := nonsense(t, 14, 60, true)
		var b bytes.Buffer
		out := json.NewEncoder(&b)
		for _, l := range log {
			event, err := json.Marshal(l.event)
			must.Do(t, err)
			facts, err := state.EncodeFacts(l.facts)
			must.Do(t, err)
			must.Do(t, out.Encode(line{event, facts, l.postings}))
		}
		must.Do(t, out.Encode(sums(m.State())))
		must.Do(t, os.WriteFile(file, b.Bytes(), 0o600))
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	s := state.New()
	seq := uint64(0)
	for one := range bytes.Lines(text) {
		if one[0] == '"' {
			var want string
			if err := json.Unmarshal(one, &want); err != nil || sums(s) != want {
				t.Errorf("the sums are %q, and were %q: %v", sums(s), want, err)
			}
			return
		}
		var l line
		var e Event
		must.Do(t, errors.Join(json.Unmarshal(one, &l), json.Unmarshal(l.Event, &e)))
		facts, err := state.DecodeFacts(l.Facts)
		must.Do(t, err)
		seq++
		s.Replay(seq, e, facts, l.Postings)
	}
	t.Error("it has no sums")
}
