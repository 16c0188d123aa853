package server

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// plainTotal sums jobs in the plainest way.
func plainTotal(list []client.Job) (jobs int, states map[string]int, spent *big.Rat, rate int64, low float64, unknown, bounded int,
	most *big.Rat) {
	states, spent, most = map[string]int{}, new(big.Rat), new(big.Rat)
	for _, j := range list {
		jobs++
		states[j.State]++
		a, _ := new(big.Rat).SetString(j.Spent.String())
		spent.Add(spent, a)
		if j.Finished != nil {
			continue
		}
		if j.Rate != nil {
			rate += int64(*j.Rate)
		}
		switch {
		case j.Outlook != nil:
			low += j.Outlook.Cost[0]
		case j.Estimate != nil:
			low += j.Estimate.Cost[0]
		default:
			unknown++
			if j.Budget != nil {
				bounded++
				b, _ := new(big.Rat).SetString(j.Budget.String())
				if left := b.Sub(b, a); left.Sign() > 0 {
					most.Add(most, left)
				}
			}
		}
	}
	return jobs, states, spent, rate, low, unknown, bounded, most
}

// same reports whether a line sums the jobs of a list.
func same(line client.JobTotal, list []client.Job) error {
	jobs, states, spent, rate, low, unknown, bounded, most := plainTotal(list)
	got, _ := new(big.Rat).SetString(line.Spent.String())
	cost := 0.0
	if line.WillCost != nil {
		cost = line.WillCost[0]
	}
	bound := new(big.Rat)
	if line.AtMost != nil {
		bound.SetString(line.AtMost.String())
	}
	if line.Bounded != bounded || bound.Cmp(most) != 0 || (line.AtMost == nil) != (bounded == 0) {
		return fmt.Errorf("%+v, want %d bounded by %s", line, bounded, most.FloatString(12))
	}
	if line.Jobs != jobs || fmt.Sprint(line.States) != fmt.Sprint(states) || got.Cmp(spent) != 0 || int64(line.Rate) != rate ||
		line.Unknown != unknown || math.Abs(cost-low) > 1e-9 {
		return fmt.Errorf("%+v, want %d %v %s %d %g and %d unknown", line, jobs, states, spent.FloatString(12), rate, low, unknown)
	}
	return nil
}

// Totals have, for each caller, filter and property, the sums of the jobs that the same filter lists; each line those
// that its value selects. Jobs are archived, brought back, in memory and on machines.
func TestTotals_EqualPlainSumsOfTheLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillListed(t, dir, 300, true)
	w := newWorld(t, func(o *Options) { o.Dir, o.Rate = dir, 1e6 })
	for i := range 5 {
		w.must("PUT", fmt.Sprint("/v1/teams/team-", i), api.SetTeam{}, nil)
	}
	for i := range 12 {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":"train-new-%02d","command":"true","team":"team-%d","budget":"$20",`+
			`"tags":{"fresh":"%d"}}}`, i, i%5, i%3), nil)
	}
	w.must("POST", "/v1/jobs/train-new-11/end", api.End{}, nil)
	zoe := w.user("zoe", identity.Grant{Team: "team-1", Role: identity.Submitter})
	if rec, p := w.ask("POST", "/v1/jobs", zoe, `{"spec":{"name":"of-zoe","command":"true","team":"team-1","budget":"$20"}}`); rec.Code >= 300 {
		t.Fatalf("%+v", p)
	}
	var back []client.Job
	w.must("GET", "/v1/jobs?state=failed&limit=1", nil, &back)
	w.ask("POST", "/v1/jobs/"+back[0].ID+"/resume", auth.OwnerName, api.Resume{}) // whether it may or not, it is counted once
	bob := w.user("bob", identity.Grant{Team: "team-2", Role: identity.Viewer})
	read := func(path, token string, into any) {
		t.Helper()
		rec, p := w.ask("GET", path, token, nil)
		if rec.Code != http.StatusOK || json.Unmarshal(rec.Body.Bytes(), into) != nil {
			t.Fatalf("%s: %d %+v", path, rec.Code, p)
		}
	}
	lines := 0
	for _, token := range []string{auth.OwnerName, bob} {
		for _, filter := range []string{"", "state=failed,queued", "team=team-2", "user=user-7", "user=zoe", "tag=fresh=1", "tag=fresh=(none)",
			"name=*new*", "live=1", "name=none", "since=2020-01-01T00:00:00Z", "project=p3", "project=(none)", "engine=p", "engine=(none)",
			"team=(none)"} {
			var list []client.Job
			read("/v1/jobs?"+filter, token, &list)
			for _, by := range []string{"team", "project", "state", "engine", "user", "tag:ticket", "tag:fresh"} {
				var all client.JobTotals
				read("/v1/totals?"+filter+"&by="+by, token, &all)
				if n := len(all.Total); n > 1 || n == 0 && len(list) > 0 {
					t.Fatalf("%s by %s: %+v", filter, by, all.Total)
				} else if n == 1 {
					if err := same(all.Total[0], list); err != nil {
						t.Errorf("%s by %s of %.5s: %v", filter, by, token, err)
					}
				}
				sum := 0
				for i, line := range all.Lines {
					if sum += line.Jobs; i > 4 || filter == "since=2020-01-01T00:00:00Z" {
						continue
					}
					q, _ := url.ParseQuery(filter)
					if key, isTag := by, by[0] == 't' && by != "team"; isTag {
						q.Add("tag", key[len("tag:"):]+"="+line.Name)
						if len(q["tag"]) > 1 {
							continue // the same key, perhaps
						}
					} else {
						q.Set(by, line.Name)
					}
					var part []client.Job
					read("/v1/jobs?"+q.Encode(), token, &part)
					if err := same(line, part); err != nil {
						t.Errorf("%s of %.5s: %v", q.Encode(), token, err)
					}
					lines++
				}
				if sum != len(list) {
					t.Errorf("%s by %s of %.5s: the lines have %d jobs, and the list %d", filter, by, token, sum, len(list))
				}
			}
		}
	}
	if lines < 200 {
		t.Errorf("the test is void: %d lines", lines)
	}
	for _, query := range []string{"by=size", "by=tag:", "by=tag", "state=no", "limit=3", "sort=name", "tag=a=1&tag=a=2"} {
		if rec, p := w.ask("GET", "/v1/totals?"+query, auth.OwnerName, nil); rec.Code != 400 || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}
