package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// speaker is an agent that follows the protocol: it keeps each message until it is durable, and resends what its
// server reports missing.
type speaker struct {
	attempt           string
	kept              []api.Message
	seq, acked, heard int64
	said              policy.Values
}

func (a *speaker) add(m api.Message) {
	a.seq++
	m.Seq, m.At = a.seq, time.Now().UTC()
	a.kept = append(a.kept, m)
}

// speak reports some loss values in one message.
func (a *speaker) speak(rng *rand.Rand) {
	s := &api.Step{}
	for range rng.IntN(4) {
		v := api.Value{At: time.Now().UTC().Truncate(10 * time.Millisecond), Step: int64(len(a.said) + 1), Value: rng.Float64()}
		s.Values = append(s.Values, v)
		a.said = append(a.said, policy.Value{At: v.At, Step: v.Step, Value: v.Value})
	}
	s.Step = int64(len(a.said))
	a.add(api.Message{Step: s})
}

func (a *speaker) report() api.Report {
	r := api.Report{Attempt: a.attempt, Now: time.Now(), First: a.acked + 1}
	for _, m := range a.kept {
		if m.Seq > a.heard && len(r.Messages) < 5 {
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}

func (a *speaker) obey(t *testing.T, o api.Orders) {
	if o.Ack > a.seq || o.Heard > a.seq || o.Heard < o.Ack {
		t.Errorf("of %d messages %d are durable and %d heard", a.seq, o.Ack, o.Heard)
	}
	a.acked, a.heard = max(a.acked, o.Ack), max(o.Heard, o.Ack)
	a.kept = slices.DeleteFunc(a.kept, func(m api.Message) bool { return m.Seq <= a.acked })
}

// written returns the values in the log, as readers of the log see them.
func written(t *testing.T, s *Control, attempt string) (list policy.Values, events int) {
	t.Helper()
	records, err := s.store.Records(t.Context(), 0, 100000)
	must.Do(t, err)
	last := int64(0)
	for _, r := range records {
		e, _, err := replay.Decode(r)
		must.Do(t, err)
		if b, ok := e.Body.(core.Progressed); ok && b.Attempt == attempt && b.Message > last {
			last, list, events = b.Message, append(list, b.Values...), events+1
			if r.Sample == (len(b.Values) > 0) {
				t.Errorf("event %d with %d values: sample is %v", r.Seq, len(b.Values), r.Sample)
			}
		}
	}
	return list, events
}

// The core sees all metric values that a program reports, in order and without duplicates, whatever gets lost:
// requests, replies, and what a restarted server had only buffered.
func TestReport_DeliversEveryValueInOrder(t *testing.T) {
	for seed := range uint64(lane.Pick(3, 24)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 7))
			c, folder := &cloud{}, t.TempDir()
			s, stop := c.open(t, folder)
			defer func() { stop() }()
			e := submission(s, "train")
			e.Body = core.JobSubmitted{Job: "train", Terms: core.Terms{Name: "train", Metric: policy.Metric{Name: "loss"}}}
			must.Do(t, s.Propose(t.Context(), e))
			until(t, "a machine", func() bool { return rented(s, "train") != "" })
			a := &speaker{attempt: "train.1"}
			a.add(api.Message{Started: &api.Started{}})
			for range 150 {
				a.turn(t, rng, &s, &stop, c, folder)
			}
			a.add(api.Message{Saved: &api.Saved{Manifest: "last"}}) // an urgent message follows it
			until(t, "all is durable", func() bool {
				o, err := s.Report(t.Context(), a.report())
				if err == nil {
					a.obey(t, o)
				}
				return len(a.kept) == 0
			})
			got, events := written(t, s, a.attempt)
			if !slices.Equal(got, a.said) {
				t.Errorf("seed %d: the log has %d values in %d events, the program said %d:\n%v\n%v", seed, len(got), events, len(a.said), got, a.said)
			}
			want, _ := policy.Seen{}.Judge(policy.Metric{Name: "loss"}, a.said)
			s.Read(func(m *core.Machine) {
				if j, _ := m.Job("train"); j.Seen() != want {
					t.Errorf("seed %d: the core has seen %+v, want %+v", seed, j.Seen(), want)
				}
			})
		})
	}
}

// turn applies one random event to an agent and its server.
func (a *speaker) turn(t *testing.T, rng *rand.Rand, s **Control, stop *func(), c *cloud, folder string) {
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		a.speak(rng)
	case 4:
		a.add(api.Message{Usage: &api.Usage{CPU: 1}})
	case 5:
		if rng.IntN(4) == 0 {
			a.add(api.Message{Saved: &api.Saved{Manifest: fmt.Sprint(a.seq)}})
		}
	case 6: // the reply is lost
		_, _ = (*s).Report(t.Context(), a.report())
	case 7: // the network delivers it twice, at the same time
		r := a.report()
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { _, _ = (*s).Report(t.Context(), r) })
		}
		twice.Wait()
	case 8: // the server restarts
		if rng.IntN(3) == 0 {
			(*stop)()
			*s, *stop = c.open(t, folder)
		}
	case 9:
		(*s).flush(t.Context())
	default:
		if o, err := (*s).Report(t.Context(), a.report()); err == nil {
			a.obey(t, o)
		}
	}
}

// A machine that ends without another report loses none of the values that were heard.
func TestReport_KeepsTheValuesOfADeadMachine(t *testing.T) {
	t.Parallel()
	c := &cloud{}
	s, stop := c.open(t, t.TempDir())
	defer stop()
	e := submission(s, "train")
	e.Body = core.JobSubmitted{Job: "train", Terms: core.Terms{Name: "train", Metric: policy.Metric{Name: "loss"}}}
	must.Do(t, s.Propose(t.Context(), e))
	until(t, "a machine", func() bool { return rented(s, "train") != "" })
	a := &speaker{attempt: "train.1"}
	a.add(api.Message{Started: &api.Started{}})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		a.speak(rng)
		o, err := s.Report(t.Context(), a.report())
		must.Do(t, err)
		a.obey(t, o)
	}
	must.Do(t, c.Terminate(t.Context(), rented(s, "train")))
	until(t, "its end is known", func() bool {
		live := true
		s.Read(func(m *core.Machine) { _, live = m.Attempt("train.1") })
		return !live
	})
	if got, _ := written(t, s, "train.1"); !slices.Equal(got, a.said) {
		t.Errorf("the log has %d values, heard were %d", len(got), len(a.said))
	}
}
