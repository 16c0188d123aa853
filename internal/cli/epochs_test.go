package cli_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/must"
)

// Five epochs that a program prints at once become five values on its receipt, each with its step, in order.
func TestReceipt_FiveEpochsAreFiveValues(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", oneMachine)
	h.write("job.yaml", script("epochs", `for n in 1 2 3 4 5; do echo "epoch=$n step=${n}0 acc=0.$((n * 7 % 5))"; done`,
		"metric: {name: acc, goal: maximize}", `progress: 'epoch=(?P<epoch>\d+) step=(?P<step>\d+) acc=(?P<acc>\S+)'`))
	h.do("run", "-y", "job.yaml", "--market", "market.yaml")
	var r receipt.Receipt
	must.Do(t, json.Unmarshal([]byte(h.out("receipt", "--json", "epochs")), &r))
	got := ""
	for _, v := range r.Loss {
		got += fmt.Sprintf("%d: %g, ", v.Step, v.Value)
	}
	if want := "10: 0.2, 20: 0.4, 30: 0.1, 40: 0.3, 50: 0, "; got != want || r.LossName != "acc" {
		t.Errorf("the receipt has of %s %s want %s", r.LossName, got, want)
	}
}
