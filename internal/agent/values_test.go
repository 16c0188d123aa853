package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// Ten values a second are taken for ever, some more at once; what is above that is
// refused with what to do about it, and counted. What is no number is heard all the same.
func TestTooManyValuesAreRefusedAndSaidSo(t *testing.T) {
	t.Parallel()
	o := objective{name: "loss"}
	now, step := epoch, int64(0)
	say := func(s api.Step) (taken bool, why error) {
		step++
		s.Step = step
		v, err := o.take(now, s, s)
		return v != nil, err
	}
	loss := api.Step{Metrics: map[string]float64{"loss": 1}}
	for range 1000 { // ten a second
		if ok, err := say(loss); !ok || err != nil {
			t.Fatalf("value %d: %v", step, err)
		}
		now = now.Add(100 * time.Millisecond)
	}
	now = now.Add(time.Minute)
	taken := 0
	for range 200 { // all at once
		if ok, _ := say(loss); ok {
			taken++
		}
	}
	if taken != valuesAtOnce || o.refused != 200-valuesAtOnce {
		t.Errorf("of 200 at once %d are taken and %d refused", taken, o.refused)
	}
	_, err := say(loss)
	if err == nil || !strings.Contains(err.Error(), "151 values of loss are refused") || !strings.Contains(err.Error(), "every few steps") {
		t.Errorf("it says %v", err)
	}
	if ok, err := say(api.Step{Broken: []string{"loss"}}); !ok || err != nil {
		t.Errorf("a loss that is no number is refused: %v", err)
	}
	if ok, err := say(api.Step{Broken: []string{"loss"}}); ok || err == nil {
		t.Error("every loss that is no number is taken, however many")
	}
	if ok, err := say(api.Step{Metrics: map[string]float64{"acc": 1}}); ok || err != nil {
		t.Errorf("another metric: %v, %v", ok, err)
	}
}

// A program that posts its epochs faster than anybody reports has each of them told; one
// that posts its metric at each of a thousand steps a second is answered 429, and the job's
// status says why.
func TestAProgramsValuesAreToldOneByOneAndTooManyAreAnswered429(t *testing.T) {
	t.Parallel()
	a := assign(t, "epochs")
	a.Metric = "loss"
	r := newRig(t, a)
	r.start()
	r.server.wait("a hint", func() bool { return strings.Contains(r.server.trouble, "values of loss are refused") })
	r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "test"} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.server.applied {
		if m.Step != nil {
			for _, v := range m.Step.Values {
				got = append(got, fmt.Sprintf("%d/%g/%g", v.Step, v.Epoch, v.Value))
			}
		}
	}
	want := []string{"1/1/0.5", "2/2/0.25", "3/3/0.125", "4/4/0.0625", "5/5/0.03125"}
	if len(got) < 6 || !slices.Equal(got[:5], want) {
		t.Errorf("told were %v, want %v and more", got, want)
	}
}
