package agent

import (
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// A program that reports an impossible total keeps running: the agent drops the total, keeps the
// step, and reports the trouble.
func TestProgress_DropsImpossibleTotal(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	a.Args, a.Command = nil, `echo '{"step":7,"total":20000000000000,"loss":1e300,"lr":0.5}' > metrics.jsonl; echo begun; exec sleep 600`
	a.Progress.File = "metrics.jsonl"
	r := running(t, a, nil)
	r.server.waitFor("the step", func(m api.Message) bool {
		return m.Step != nil && m.Step.Step == 7 && m.Step.Total == 0 && len(m.Step.Broken) == 1 && m.Step.Metrics["lr"] == 0.5
	})
	r.server.wait("the trouble", func() bool {
		return strings.Contains(r.server.trouble, "out of bounds") && strings.Contains(r.server.trouble, "total")
	})
	r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "enough"} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}
