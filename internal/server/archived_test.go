package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"scrimp/client"
	"scrimp/internal/server/auth"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// Archived jobs can be read, listed, named and resumed like others.
func TestArchivedJobs_CanBeReadAndResumed(t *testing.T) {
	t.Parallel()
	const closed, queued = 40, 20
	dir := t.TempDir()
	in := func(o *Options) { o.Dir, o.Rate = dir, 1e6 }
	st, err := sqlite.Open(dir)
	check(t, err)
	FillClosed(t, st, closed, queued)
	check(t, st.Close())
	t.Run("the first start puts the log in order by job", func(t *testing.T) {
		w := newWorld(t, in)
		eventually.True(t, "the log is in order", func() bool {
			rec, _ := w.ask("GET", "/v1/jobs/c-0000039/explain", auth.OwnerName, nil)
			return rec.Code == http.StatusOK
		})
	})
	w := newWorld(t, in)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)

	var j struct {
		ID, State string
		Closed    bool
	}
	w.must("GET", "/v1/jobs/c-0000003", nil, &j)
	if j.ID != "c-0000003" || j.State != "succeeded" || !j.Closed {
		t.Errorf("an archived job is shown as %+v", j)
	}
	var receipt struct {
		Cost   string
		Ledger struct {
			Agrees   bool
			Postings int
		}
		Tries []struct{ Attempt string }
		Loss  []struct{ Value float64 }
	}
	w.must("GET", "/v1/jobs/c-0000003/receipt", nil, &receipt)
	if !receipt.Ledger.Agrees || receipt.Ledger.Postings == 0 || len(receipt.Tries) != 1 || len(receipt.Loss) != 1 {
		t.Errorf("the receipt of an archived job is %+v", receipt)
	}
	var decisions []struct{ Take string }
	w.must("GET", "/v1/jobs/c-0000003/explain", nil, &decisions)
	if len(decisions) == 0 || decisions[0].Take == "" {
		t.Errorf("the decisions about an archived job are %+v", decisions)
	}

	for _, query := range []string{"", "&before="} {
		seen, next := []string{}, ""
		for {
			path := "/v1/jobs?limit=7" + query + next
			if next != "" && query == "" {
				path = "/v1/jobs?limit=7&after=" + next
			}
			var page []struct{ ID string }
			w.must("GET", path, nil, &page)
			if len(page) == 0 {
				break
			}
			names := []string{}
			for _, j := range page {
				names = append(names, j.ID)
			}
			if next = names[len(names)-1]; query != "" {
				next = names[0]
				seen = append(names, seen...)
			} else {
				seen = append(seen, names...)
			}
		}
		if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != closed+queued || len(seen) != closed+queued {
			t.Errorf("pages %q show %d jobs, want %d in order", query, len(seen), closed+queued)
		}
	}
	var stopped []struct{ ID, State string }
	w.must("GET", "/v1/jobs?state=cancelled", nil, &stopped)
	if len(stopped) != closed/10 {
		t.Errorf("%d cancelled jobs are listed, want %d", len(stopped), closed/10)
	}

	w.must("POST", "/v1/jobs", map[string]any{"spec": json.RawMessage(File("c-0000004"))}, &j)
	if j.ID != "c-0000004-2" {
		t.Errorf("a job by the name of an archived one became %s", j.ID)
	}
	var costs struct {
		Lines []struct {
			Name string
			Jobs int
		}
	}
	w.must("GET", "/v1/costs?by=job", nil, &costs)
	if len(costs.Lines) != closed {
		t.Errorf("costs are listed of %d jobs, want %d", len(costs.Lines), closed)
	}
	w.must("GET", "/v1/costs", nil, &costs)
	if len(costs.Lines) != 1 || costs.Lines[0].Jobs != closed {
		t.Errorf("costs by team: %+v, want %d jobs", costs.Lines, closed)
	}
	w.must("POST", "/v1/jobs/c-0000009/resume", map[string]any{}, &j)
	if j.State != "queued" && j.State != "running" {
		t.Errorf("an archived job that is resumed is %s", j.State)
	}
	var all client.JobTotals
	w.must("GET", "/v1/totals?by=state", nil, &all)
	if len(all.Total) != 1 || all.Total[0].Jobs != closed+queued+1 {
		t.Errorf("totals with a job that is back in memory: %+v, want %d jobs", all.Total, closed+queued+1)
	}
	var verified struct {
		OK      bool
		Problem string
		Jobs    int
	}
	w.must("GET", "/v1/ledger/verify", nil, &verified)
	if !verified.OK || verified.Jobs != closed+queued+1 {
		t.Errorf("verify says %+v, want %d jobs", verified, closed+queued+1)
	}
}
