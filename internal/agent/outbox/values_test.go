package outbox

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// listener is a server that follows the protocol: what it receives becomes durable later, and a
// restart loses the rest.
type listener struct {
	durable, heard int64
	values, log    []float64 // received, and durable
}

// hear receives a report and answers.
func (l *listener) hear(t *testing.T, first int64, messages []api.Message) (ack, heard int64) {
	l.heard = max(l.heard, first-1)
	if l.durable = max(l.durable, first-1); len(messages) > maxReport {
		t.Errorf("%d messages in one report", len(messages))
	}
	for _, m := range messages {
		if m.Seq > l.heard+1 {
			break
		}
		if m.Seq <= l.heard {
			continue
		}
		l.heard = m.Seq
		if m.Step != nil {
			for _, v := range m.Step.Values {
				l.values = append(l.values, v.Value)
			}
		} else {
			l.keep()
		}
	}
	return l.durable, l.heard
}

// keep makes durable what was received.
func (l *listener) keep() { l.log, l.durable = append(l.log, l.values...), l.heard; l.values = nil }

// restart loses what is not durable.
func (l *listener) restart() { l.values, l.heard = nil, l.durable }

// Despite lost requests and restarts of agent and server, the server ends up with every value of the
// objective metric, in order and once.
func TestBox_DeliversEveryValueOnce(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if dir, err := os.MkdirTemp("/dev/shm", "scrimp-outbox-"); err == nil { // the speed of disk syncs is not under test
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		top = dir
	}
	for seed := range uint64(lane.Pick(30, 3000)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dir := filepath.Join(top, strconv.FormatUint(seed, 10))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		o, err := Open(dir, "j.1")
		if err != nil {
			t.Fatal(err)
		}
		var l listener
		var said []float64
		for n := range 200 {
			switch rng.IntN(10) {
			case 0, 1, 2:
				for range 1 + rng.IntN(4) {
					v := rng.Float64()
					said = append(said, v)
					o.Step(epoch.Add(time.Duration(n)*time.Second), api.Step{Step: int64(len(said)), Metrics: map[string]float64{"loss": v}},
						&api.Value{At: epoch, Step: int64(len(said)), Value: v})
				}
			case 3:
				o.Step(epoch, api.Step{Step: int64(len(said)), Metrics: map[string]float64{"acc": 1}}, nil)
				o.Usage(epoch, api.Usage{CPU: 1})
			case 4:
				if err := o.Add(api.Message{At: epoch, Saved: &api.Saved{}}); err != nil {
					t.Fatal(err)
				}
			case 5: // the agent dies and restarts; its file may end within a line
				if rng.IntN(2) == 0 {
					f, _ := os.OpenFile(filepath.Join(dir, "outbox.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
					_, _ = f.WriteString(`{"value":{"at":`)
					_ = f.Close()
				}
				_ = o.Close()
				if o, err = Open(dir, "j.1"); err != nil {
					t.Fatal(err)
				}
			case 6:
				l.restart()
			case 7:
				l.keep()
			case 8: // the answer is lost
				l.hear(t, o.First(), o.Next())
			default:
				if _, err := o.Ack(l.hear(t, o.First(), o.Next())); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := o.Add(api.Message{At: epoch, Ended: &api.Ended{}}); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := o.Ack(l.hear(t, o.First(), o.Next())); err != nil {
				t.Fatal(err)
			}
		}
		if !o.Empty() || !slices.Equal(l.log, said) {
			t.Fatalf("seed %d: empty is %v; the server has %d values, the program said %d", seed, o.Empty(), len(l.log), len(said))
		}
		_ = o.Close()
	}
}

// A server that is unreachable for the longest time an agent waits gets all values in reports of
// acceptable size, and the file does not grow forever.
func TestBox_SplitsManyValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, err := Open(dir, "j.1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	var l listener
	const many = 10 * 60 * 10 // ten a second, for ten minutes
	for n := range many {
		o.Step(epoch, api.Step{Step: int64(n)}, &api.Value{At: epoch, Step: int64(n), Value: float64(n)})
	}
	for !o.Empty() {
		list := o.Next()
		n := 0
		for _, m := range list {
			n += len(m.Step.Values)
		}
		if n > maxReportValues+maxValues {
			t.Fatalf("a report carries %d values", n)
		}
		ack, heard := l.hear(t, o.First(), list)
		if l.keep(); len(list) == 0 {
			ack = heard
		}
		if _, err := o.Ack(ack, heard); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.log) != many || !slices.IsSorted(l.log) {
		t.Errorf("%d values of %d have come, sorted is %v", len(l.log), many, slices.IsSorted(l.log))
	}
	for n := range 20000 { // one is always on its way
		o.Step(epoch, api.Step{Step: int64(n)}, &api.Value{At: epoch, Step: int64(n)})
		if n%10 == 0 {
			l.keep()
			if _, err := o.Ack(l.hear(t, o.First(), o.Next())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if st, err := os.Stat(filepath.Join(dir, "outbox.jsonl")); err != nil || st.Size() > 2*minRewrite {
		t.Errorf("the file has %d bytes (%v)", st.Size(), err)
	}
}
