package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// The server receives every epoch of a program that posts them faster than reports are sent. A
// program that posts its metric at each of a thousand steps a second gets a 429, and the job's
// status gives the reason.
func TestProgress_DeliversEveryValueAndLimitsRate(t *testing.T) {
	t.Parallel()
	a := assign(t, "epochs")
	a.Metric = "loss"
	r := newRig(t, a)
	r.start()
	r.server.wait("a hint", func() bool { return strings.Contains(r.server.trouble, "values of loss, more than") })
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
