package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

var exactly = regexp.MustCompile(`<data class="money[^"]*" value="([^"]*)"`)

// Every cell of the costs by day adds up to the totals of the rows and the columns, and all of them to the ledger.
func TestCostsByDay_AddUpToTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	w.event(core.MarketSeen{
		Offers: []market.Offer{{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand,
			Currency: money.USD, CPUs: 8, Memory: 1 << 40}},
		Quotes: []market.Quote{{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, Available: true, At: w.control.Now()}}}, 0)
	for i, hours := range []float64{0.1, 0.3, 0.05, 0.2, 0.01, 0.15, 0.07} { // more teams than colours
		team := fmt.Sprintf("team-%d", i)
		w.must("PUT", "/v1/teams/"+team, `{"projects":[]}`, nil)
		w.went(fmt.Sprintf("run%d", i), costing(fmt.Sprintf("run%d", i), team, ""), 100, hours)
	}
	want := w.spentIn()
	if want.IsZero() {
		t.Fatal("nothing was spent")
	}
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	until := "until=" + w.control.Now().Add(24*time.Hour).UTC().Format(time.DateOnly) // a run may end after midnight
	for _, query := range []string{"?" + until, "?by=user&" + until, "?days=30&by=kind&" + until} {
		page := ann.shows("/costs/days"+query, 200, "total is the ledger")
		_, body, _ := strings.Cut(page, "<tbody>")
		body, foot, _ := strings.Cut(body, "</tbody>")
		var all money.Amount
		var columns []money.Amount
		for row := range strings.SplitSeq(strings.TrimSpace(body), "\n") {
			cells := amounts(t, row)
			var sum money.Amount
			for i, a := range cells[:len(cells)-1] {
				if len(columns) <= i {
					columns = append(columns, money.Amount{})
				}
				sum, columns[i] = sum.Add(a), columns[i].Add(a)
			}
			if total := cells[len(cells)-1]; sum != total {
				t.Errorf("%s: a day adds up to %s and says %s", query, sum, total)
			}
			all = all.Add(sum)
		}
		foot, _, _ = strings.Cut(foot, "</tfoot>")
		foots := amounts(t, foot)
		for i, a := range append(columns, all) {
			if a != foots[i] {
				t.Errorf("%s: column %d adds up to %s and says %s", query, i, a, foots[i])
			}
		}
		if all != want {
			t.Errorf("%s: the page adds up to %s, and the ledger to %s", query, all, want)
		}
	}
}

// amounts returns the exact amounts of a part of a page.
func amounts(t *testing.T, text string) (list []money.Amount) {
	t.Helper()
	for _, m := range exactly.FindAllStringSubmatch(text, -1) {
		a, err := money.Parse(m[1])
		must.Do(t, err)
		list = append(list, a)
	}
	return list
}
