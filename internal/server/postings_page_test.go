package server

import (
	"encoding/csv"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// linkedSum finds a sum of the page Costs with the address of its postings.
var linkedSum = regexp.MustCompile(`<a href="([^"]*export/costs[^"]*)"[^>]*><data class="money[^"]*" value="([^"]*)"`)

// Each linked sum of the page Costs is, to the last digit, the sum of the rows of the file that it links to.
func TestCostsPage_SumsEqualThePostingsThatTheyLinkTo(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.idles(8 * time.Hour)
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	for by, least := range map[string]int{"team": 2, "project": 2, "user": 2, "job": 2, "provider": 2, "region": 2} {
		found := linkedSum.FindAllStringSubmatch(ann.shows("/costs?by="+by, 200), -1)
		if len(found) < least {
			t.Errorf("by %s: %d sums have a link, want %d", by, len(found), least)
		}
		for _, link := range found {
			address := html.UnescapeString(link[1])
			rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(ann.shows(address, 200), "\ufeff"))).ReadAll()
			must.Do(t, err)
			sum, cost := money.Amount{}, len(rows[0])-2
			for _, row := range rows[1:] {
				a, err := money.Parse(row[cost])
				if err != nil || rows[0][cost] != "cost" {
					t.Fatalf("%s: %v %v", address, rows[0], err)
				}
				sum = sum.Add(a)
			}
			if sum.String() != link[2] {
				t.Errorf("by %s: the page shows %s, and the rows of %s add up to %s", by, link[2], address, sum)
			}
		}
	}
	if text := ann.shows("/costs?since=24h", 200); linkedSum.MatchString(text) {
		t.Error("a span of booking links to a file of the time that was paid for")
	}
	ann.shows("/data/export/costs?"+url.Values{"team": {"nosuch"}}.Encode(), 404, "there are no such costs")
}
