package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

const ms = time.Millisecond

// affine takes a millisecond count for a batch, and more for each request.
type affine struct{ base, each time.Duration }

func (a affine) Time(_, n int) time.Duration { return a.base + time.Duration(n)*a.each }

// plainMachine is a machine of the plain twin.
type plainMachine struct {
	rented, ready bool
	since, boots  time.Duration
	idle          time.Duration
	until         []time.Duration // of each server, 0: idle
}

// plainly plays a trace in steps of a millisecond and looks at everything in each of them. All times must be whole
// milliseconds. It returns the latencies in ascending order and the spans.
func plainly(t load.Trace, s simulation.Service, slots int, r simulation.Rule) (lat []time.Duration, spans []simulation.Span) {
	machines := make([]plainMachine, r.Max)
	for i := range machines {
		machines[i].until = make([]time.Duration, slots)
	}
	var queue []int
	next, inService, answeredAt := 0, map[time.Duration]int{}, time.Duration(0)
	busy := func(m plainMachine) bool { return slices.Max(m.until) > 0 }
	count := func() (n int) {
		for _, m := range machines {
			if m.rented {
				n++
			}
		}
		return n
	}
	tick := time.Duration(-1)
	for now := time.Duration(0); next < len(t.At) || len(lat) < len(t.At) || now <= max(t.Window, answeredAt); now += ms {
		floor := r.Min
		if r.WarmMin > 0 && r.Warm.Has(int((t.Start+now)/time.Hour%24)) {
			floor = max(floor, r.WarmMin)
		}
		for i := range machines {
			m := &machines[i]
			if now == 0 && i < floor {
				m.rented, m.ready = true, true
			}
			for k := range m.until {
				if m.until[k] == now && now > 0 {
					m.until[k] = 0
					if !busy(*m) {
						m.idle = now
					}
				}
			}
			if m.rented && !m.ready && m.boots == now {
				m.ready, m.idle = true, now
			}
		}
		delete(inService, now)
		for next < len(t.At) && t.At[next] == now {
			queue = append(queue, next)
			next++
		}
		for len(queue) > 0 && (len(queue) >= r.Batch || now >= t.At[queue[0]]+r.Wait) {
			m, k := 0, -1
			for ; m < len(machines) && k < 0; m++ {
				if machines[m].ready {
					k = slices.Index(machines[m].until, 0)
				}
			}
			if k < 0 {
				break
			}
			n := min(r.Batch, len(queue))
			done := now + s.Time(queue[0], n)
			machines[m-1].until[k] = done
			inService[done] += n
			answeredAt = max(answeredAt, done)
			for _, q := range queue[:n] {
				lat = append(lat, done-t.At[q])
			}
			queue = queue[n:]
		}
		for i := range machines {
			m := &machines[i]
			last := len(queue) > 0 && count() == 1
			if r.Min == r.Max || !m.ready || busy(*m) || m.idle+r.Keep > now || count() <= floor || last {
				continue
			}
			spans = append(spans, simulation.Span{From: m.since, To: now})
			m.rented, m.ready = false, false
		}
		in := len(queue)
		for _, n := range inService {
			in += n
		}
		wanted := min(r.Max, max(floor, (in+r.Batch*slots-1)/(r.Batch*slots)))
		if r.Min == r.Max || count() >= wanted && tick != now {
			continue
		}
		if r.Poll > 0 && tick != now {
			if tick < now {
				tick = (now/r.Poll + 1) * r.Poll
			}
			continue
		}
		for i := range machines {
			if m := &machines[i]; !m.rented && count() < wanted {
				m.rented, m.ready, m.since, m.boots = true, false, now, now+r.Cold
			}
		}
	}
	end := max(t.Window, answeredAt)
	for now := end + ms; r.Min < r.Max && now <= end+r.Keep+r.Cold+ms; now += ms { // what may stop runs to its stop
		floor := r.Min
		if r.WarmMin > 0 && r.Warm.Has(int((t.Start+end)/time.Hour%24)) {
			floor = max(floor, r.WarmMin)
		}
		for i := range machines {
			m := &machines[i]
			if m.rented && !m.ready && m.boots == now {
				m.ready, m.idle = true, now
			}
			if m.ready && m.idle+r.Keep <= now && count() > floor {
				spans = append(spans, simulation.Span{From: m.since, To: now})
				m.rented, m.ready = false, false
			}
		}
	}
	for _, m := range machines {
		if m.rented {
			spans = append(spans, simulation.Span{From: m.since, To: max(end, m.since)})
		}
	}
	slices.Sort(lat)
	return lat, spans
}

func sortSpans(list []simulation.Span) []simulation.Span {
	slices.SortFunc(list, func(a, b simulation.Span) int {
		return int(max(-1, min(1, a.From-b.From))*2 + max(-1, min(1, a.To-b.To)))
	})
	return list
}

// Each rule does what a simulation does that looks at everything in each millisecond: the same latencies, the same spans.
func TestSimulation_AgreesWithAPlainTwin(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		trace := load.Trace{Start: time.Hour - time.Duration(r.IntN(3000))*ms}
		at := time.Duration(0)
		for range 1 + r.IntN(200) {
			at += time.Duration(r.ExpFloat64()*30) * ms
			if r.IntN(40) == 0 {
				at += time.Duration(r.IntN(2000)) * ms
			}
			trace.At = append(trace.At, at)
		}
		trace.Window = at + time.Duration(r.IntN(500))*ms
		slots := 1 + r.IntN(3)
		least := r.IntN(3)
		rule := simulation.Rule{Batch: 1 + r.IntN(5), Wait: time.Duration(r.IntN(3)*20) * ms, Min: least,
			Max: max(1, least+r.IntN(4)), Cold: time.Duration(r.IntN(400)) * ms, Keep: time.Duration(r.IntN(300)) * ms,
			Poll: time.Duration(r.IntN(2)*50) * ms}
		if rule.Max > rule.Min && r.IntN(2) == 0 {
			rule.Warm, rule.WarmMin = load.Hours{From: r.IntN(2), To: 2}, rule.Max
		}
		service := affine{time.Duration(5+r.IntN(60)) * ms, time.Duration(r.IntN(10)) * ms}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := simulation.NewSimulation(trace, service, slots, nil).Run(rule)
			lat, spans := plainly(trace, service, slots, rule)
			if o.Requests != len(trace.At) || len(lat) != len(trace.At) {
				t.Fatalf("%d and %d answers of %d requests", o.Requests, len(lat), len(trace.At))
			}
			var sum time.Duration
			for _, l := range lat {
				sum += l
			}
			for q, got := range o.Quantiles {
				if want := lat[(q*len(lat)+999)/1000-1]; got != want {
					t.Errorf("quantile %d is %v, want %v", q, got, want)
				}
			}
			if mean := sum / time.Duration(len(lat)); o.Mean < mean-1000 || o.Mean > mean+1000 {
				t.Errorf("mean %v, want %v", o.Mean, mean)
			}
			if got, want := sortSpans(o.Spans), sortSpans(spans); !slices.Equal(got, want) {
				t.Errorf("%+v\n spans %v\n want  %v", rule, got, want)
			}
		})
	}
}

// With scale to zero a trace with long gaps is answered whole, each request after a cold start, and between them
// nothing is paid.
func TestScaleToZero_AnswersEachRequestOnce(t *testing.T) {
	trace := load.Trace{At: []time.Duration{0, time.Hour, 2 * time.Hour}, Window: 3 * time.Hour}
	rule := simulation.Rule{Kind: simulation.ScaleToZero, Batch: 1, Max: 4, Cold: 60 * time.Second, Keep: 5 * time.Minute}
	o := simulation.NewSimulation(trace, flat(time.Second), 1, nil).Run(rule)
	if o.Requests != 3 || o.Colds != 3 || len(o.Spans) != 3 || o.Quantiles[500] != 61*time.Second {
		t.Fatalf("%+v", o)
	}
	for i, s := range o.Spans { // 60 s to start, 1 s to answer, 300 s kept
		if want := time.Duration(i) * time.Hour; s.From != want || s.To != want+361*time.Second {
			t.Errorf("span %d: %v", i, s)
		}
	}
	if idle, ok := o.Idle(); !ok || idle < 0.99 {
		t.Errorf("idle %v, %v", idle, ok)
	}
}

// A run that may miss a target of one in a hundred stops at the second miss, and one that keeps it does not.
func TestRun_StopsOnceATargetIsMissed(t *testing.T) {
	trace := load.Trace{At: make([]time.Duration, 100), Window: time.Second}
	rule := simulation.Rule{Batch: 1, Min: 1, Max: 1}
	for limit, meets := range map[time.Duration]bool{99 * ms: true, 98 * ms: false} {
		targets := []simulation.Target{{PerMille: 990, Limit: limit}}
		o := simulation.NewSimulation(trace, flat(ms), 1, targets).Run(rule)
		if o.Meets(targets) != meets || o.Stopped == meets {
			t.Errorf("limit %v: %+v", limit, o)
		}
	}
}

// A trace that would be answered years later ends the run, and no clock runs over.
func TestRun_EndsWhereNoEndIsInSight(t *testing.T) {
	trace := load.Trace{At: make([]time.Duration, 1000)}
	o := simulation.NewSimulation(trace, flat(1<<62), 1, nil).Run(simulation.Rule{Batch: 1, Min: 1, Max: 1})
	if !o.Stopped || o.Meets(nil) {
		t.Errorf("%+v", o)
	}
}
