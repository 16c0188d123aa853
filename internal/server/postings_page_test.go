package server

import (
	"encoding/csv"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// linkedSum finds a sum of the page Costs with the address of its postings.
var linkedSum = regexp.MustCompile(`<a href="([^"]*export/costs[^"]*)"[^>]*><data class="money[^"]*" value="([^"]*)"`)

// Each linked sum of a page is, to the last digit, the sum of the rows of the file that it links to.
func TestPages_SumsEqualThePostingsThatTheyLinkTo(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.idles(8 * time.Hour)
	w.must("POST", "/v1/groups", inArray("sweep", "team-1", "0-1", ""), nil)
	w.began("sweep", 2)
	for _, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, 35*time.Hour)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 38*time.Hour)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(38 * time.Hour), Cause: "terminated"}, 38*time.Hour)
	}
	until := w.control.Now().Add(72 * time.Hour).UTC().Format(time.DateOnly)
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	for page, least := range map[string]int{"/jobs/fit": 1, "/jobs/sweep.0": 1, "/groups/sweep": 1, "/costs?by=team": 3, "/costs?by=project": 2,
		"/costs?by=user": 2, "/costs?by=job": 4, "/costs?by=provider": 2, "/costs?by=region": 2, "/costs?by=sku": 2, "/costs?by=category": 2,
		"/costs/days?until=" + until: 3, "/costs/days?by=sku&until=" + until: 3, "/chargeback": 1} {
		found := linkedSum.FindAllStringSubmatch(ann.shows(page, 200), -1)
		if len(found) < least {
			t.Errorf("%s: %d sums have a link, want %d", page, len(found), least)
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
				t.Errorf("%s shows %s, and the rows of %s add up to %s", page, link[2], address, sum)
			}
		}
	}
	if text := ann.shows("/costs?since=24h", 200); linkedSum.MatchString(text) {
		t.Error("a span of booking links to a file of the time that was paid for")
	}
	ann.shows("/data/export/costs?"+url.Values{"team": {"nosuch"}}.Encode(), 404, "there are no such costs")
}
