package sim

import (
	"testing"
	"time"

	"scrimp/internal/lib/money"
)

// At $3 an hour without interruptions, a run is over its budget exactly if the budget is below what the hours cost: ten
// hours cost $30 and a little. It finishes after the ten hours and a little.
func TestAsk_CountsRunsOverTheirBudget(t *testing.T) {
	const work = 10 * time.Hour
	for _, dollars := range []int64{10, 25, 29, 32, 60} {
		q := longJob(work)
		q.Runs, q.Terms.HasBudget, q.Terms.Budget = 3, true, money.Picos(dollars*1e12)
		over := 0.0
		if float64(dollars) < 3*work.Hours() {
			over = 1
		}
		f := Ask(q)
		if f.OverBudget != over || f.Done != 1-over || f.Endless != 0 {
			t.Errorf("$%d: over its budget in %v of the runs, want %v; done in %v", dollars, f.OverBudget, over, f.Done)
		}
		if over == 0 && (f.Finish[1] < work || f.Finish[1] > work+30*time.Minute) {
			t.Errorf("$%d: done after %v", dollars, f.Finish[1])
		}
	}
	q := longJob(work)
	if f := Ask(q); f.OverBudget != 0 {
		t.Errorf("without a budget: over it in %v of the runs", f.OverBudget)
	}
	q.Terms.GPUHours, q.Terms.WallClock = 0, 2*time.Hour
	if f := Ask(q); f.OverBudget != 1 || f.Done != 0 {
		t.Errorf("two hours of wall-clock time for ten hours of work: over it in %v of the runs", f.OverBudget)
	}
}
