package commit_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/commit"
)

var demandFile = flag.String("demand", "../../../../shared/data/commitments/demand.csv", "the benchmark's demand")

// The public benchmark, if its data is present. Costs are means over regions in per cent of on-demand, months 13 to 36.
// Falls are of half the demand, on the 2nd of each of the last twelve months; the single one is that of 2 August (day
// 183). The figures of hindsight in the last year are those that the benchmark's own scorer prints.
func TestBenchmark_ReachesItsTargets(t *testing.T) {
	in, err := os.Open(*demandFile)
	if err != nil {
		t.Skipf("SKIPPED: the benchmark's demand is not beside the repository: %v", err)
	}
	defer in.Close()
	d, err := commit.ReadDemand("demand.csv", in, zero)
	must.Do(t, err)
	insured := []float64{0.1}
	if testing.Verbose() {
		insured = []float64{0, 0.05, 0.1, 0.2}
	}
	fmt.Println("DISCOUNT  INSURE  AS IT WAS  TO REACH  TWELVE FALLS  TO REACH  2 AUGUST  LAST YEAR  HINDSIGHT")
	for _, c := range []struct {
		price                 int64
		cost, fallen, instead float64 // targets, and the ladder in hindsight of the last year
	}{{7200, 79.6, 83.5, 78.87}, {6000, 69.4, 73.0, 68.40}} {
		for _, insure := range insured {
			var cost, fallen, august, year, best float64
			for _, r := range d.Regions {
				n := float64(len(d.Regions))
				res := commit.Policy{Price: commit.Share(c.price), Months: 12, Insure: insure, Fall: 5000}.Simulate(r, d.Calendar, 12, 36, true)
				cost, year, best = cost+is(res.All)/n, year+is(res.Year)/n, best+is(res.YearBest.Tally)/n
				for i, f := range res.Falls {
					fallen += is(f.All) / n / 12
					if i == 6 {
						august += is(f.All) / n
					}
				}
				if !res.YearBest.Attainable {
					t.Errorf("%s: no ladder reaches the best level of each month", r.Name)
				}
			}
			fmt.Printf("%7.0f%%  %5.0f%%  %9.2f  %8.1f  %12.2f  %8.1f  %8.2f  %9.2f  %9.2f\n", float64(commit.One-c.price)/100, insure*100,
				cost, c.cost, fallen, c.fallen, august, year, best)
			if insure == 0.1 && (cost > c.cost || fallen > c.fallen) {
				t.Errorf("price %d: %.2f %% and %.2f %%, to reach are %.1f and %.1f", c.price, cost, fallen, c.cost, c.fallen)
			}
			if math.Abs(best-c.instead) > 0.005 {
				t.Errorf("price %d: hindsight is %.3f %%, the scorer says %.2f", c.price, best, c.instead)
			}
		}
	}
}

// is returns a cost in per cent; all costs of the benchmark are known.
func is(t commit.Tally) float64 {
	v, _ := t.Percent()
	return v
}
