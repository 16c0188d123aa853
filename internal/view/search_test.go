package view_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/test/lane"
	"scrimp/internal/view/search"
)

// searched is the record of a job with all that a search compares.
func (w *world) searched(order uint64) json.RawMessage {
	w.Helper()
	type object = map[string]any
	pick := func(prefix string, n int) string {
		if i := w.rng.IntN(n); i > 0 {
			return fmt.Sprint(prefix, i)
		}
		return ""
	}
	submitted := time.Date(2026, 1, 1, 0, 0, int(order), 0, time.UTC)
	terms := object{"name": pick("name-", 3), "group": pick("g", 3), "session": pick("s", 2),
		"owner": object{"team": pick("t", 4), "tags": object{"k": pick("v", 3), pick("x", 4): "y"}}}
	if w.rng.IntN(3) > 0 {
		terms["deadline"] = submitted.Add(time.Duration(w.rng.IntN(4)) * time.Hour)
	}
	text, err := json.Marshal(object{"id": fmt.Sprintf("k-%d", order), "order": order, "user": pick("u", 3),
		"state":     []string{"succeeded", "failed", "stopped", "cancelled"}[w.rng.IntN(4)],
		"submitted": submitted, "finished": submitted.Add(2 * time.Hour), "terms": terms,
		"run": object{"settled": money.Picos(int64(w.rng.IntN(5)-1) * 1e12)}})
	must(w, err)
	return text
}

// archiveSearched appends n events that archive jobs or bring some back, and notes the records of what is archived.
func (w *world) archiveSearched(n int, there map[string]json.RawMessage) {
	w.Helper()
	for range n {
		r := w.event()
		facts, err := state.DecodeFacts(r.Facts)
		must(w, err)
		for range w.rng.IntN(4) {
			order := uint64(1 + w.rng.IntN(3500))
			job := fmt.Sprintf("k-%d", order)
			if _, gone := there[job]; gone && w.rng.IntN(3) == 0 {
				facts = append(facts, state.JobRehydrated{Job: job})
				delete(there, job)
			} else if !gone {
				there[job] = w.searched(order)
				facts = append(facts, state.JobArchived{Job: job, Record: there[job]})
			}
		}
		if len(facts) > 0 {
			r.Sample = false
		}
		r.Facts, err = state.EncodeFacts(facts)
		must(w, err)
		must(w, w.Append(w.Context(), []store.Record{r}))
	}
	w.rise(w.seq)
}

// anySearch returns a search and the text of its pattern.
func (w *world) anySearch() (s search.Query, pattern string) {
	if w.rng.IntN(3) == 0 {
		s.States = []state.Status{state.Failed, state.Queued, state.Stopped}[:1+w.rng.IntN(3)]
	}
	for _, f := range []func(){
		func() { s.Teams = []string{"t1", "none", ""}[:w.rng.IntN(4)] },
		func() { s.User = "u1" },
		func() { s.Group = "g2" },
		func() { s.Session = true },
		func() { s.Tags = map[string]string{"k": []string{"", "v1", "v9"}[w.rng.IntN(3)]} },
		func() { s.Since = time.Date(2026, 1, 1, 0, 20, 0, 0, time.UTC) },
		func() { pattern = []string{"*name-1*", "*k-1?*", "k-[12]*5", "*none*", "*"}[w.rng.IntN(5)] },
	} {
		if w.rng.IntN(4) == 0 {
			f()
		}
	}
	var err error
	s.Name, err = search.PatternOf(pattern)
	must(w, err)
	s.Order = append([]search.Order{search.ByAge}, search.Orders...)[w.rng.IntN(6)]
	s.Oldest = s.Order == search.ByAge && w.rng.IntN(2) == 0
	s.Limit = 1 + w.rng.IntN(30)
	return s, pattern
}

// matches compares a job with a search in the plainest way.
func matches(j *state.Job, s search.Query, pattern string) bool {
	t := j.Terms()
	byID, _ := path.Match(pattern, j.ID())
	byName, _ := path.Match(pattern, t.Name)
	for key, want := range s.Tags {
		if have, ok := t.Owner.Tags[key]; !ok || want != "" && have != want {
			return false
		}
	}
	return (len(s.States) == 0 || slices.Contains(s.States, j.State())) &&
		(s.Teams == nil || slices.Contains(s.Teams, t.Owner.Team)) && (s.User == "" || s.User == j.User()) &&
		(s.Group == "" || s.Group == t.Group) && (!s.Session || t.Session != "") &&
		(s.Since.IsZero() || !j.Submitted().Before(s.Since)) && (pattern == "" || byID || byName)
}

// before compares two archived jobs in an order in the plainest way.
func before(a, b *state.Job, s search.Query) int {
	left := func(j *state.Job) time.Duration {
		if j.Terms().Deadline.IsZero() {
			return 1 << 62
		}
		return j.Terms().Deadline.Sub(j.Finished())
	}
	by := map[search.Order]int{
		search.BySpent: b.Spent(b.Finished()).Cmp(a.Spent(a.Finished())), search.ByDeadline: cmp.Compare(left(a), left(b)),
		search.ByName: strings.Compare(a.ID(), b.ID()), search.ByState: strings.Compare(string(a.State()), string(b.State())),
	}[s.Order]
	newest := cmp.Compare(b.Order(), a.Order())
	if s.Oldest {
		newest = -newest
	}
	return cmp.Or(by, newest)
}

// All pages of a search together have the archived jobs that match, each once, in the order of the search: as a plain
// comparison of all records finds them.
func TestSearch_MatchesAPlainFilterAndSort(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(3, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, there := newWorld(t, seed), map[string]json.RawMessage{}
			for range 2 {
				v, end := w.follow()
				w.archiveSearched(150, there)
				var all []*state.Job
				for _, job := range slices.Sorted(maps.Keys(there)) {
					j, err := state.ReadJob(there[job])
					must(t, err)
					all = append(all, j)
				}
				found := 0
				for range 60 {
					s, pattern := w.anySearch()
					var want, got []string
					for _, j := range slices.SortedFunc(slices.Values(all), func(a, b *state.Job) int { return before(a, b, s) }) {
						if matches(j, s, pattern) {
							want = append(want, j.ID())
						}
					}
					for what := s; ; {
						jobs, last, more, err := v.Search(t.Context(), w.seq, what)
						must(t, err)
						for _, j := range jobs {
							got = append(got, j.ID())
						}
						if !more {
							break
						}
						what.After = &last
					}
					found += len(got)
					if !slices.Equal(got, want) {
						t.Fatalf("%+v %q:\n%v, want\n%v", s, pattern, got, want)
					}
				}
				if end(); found < 100 {
					t.Errorf("the searches find %d jobs", found)
				}
			}
		})
	}
}

// Lower keys come first in each order, for jobs whose amounts and times have any sign.
func TestOrder_KeysCompareAsTheirValues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job := func(text string) *state.Job {
		j, err := state.ReadJob(json.RawMessage(text))
		must(t, err)
		return j
	}
	for order, rising := range map[search.Order][]string{
		search.BySpent: {`{"id":"a","run":{"settled":"12"}}`, `{"id":"a","run":{"settled":"0.5"}}`, `{"id":"a","run":{}}`,
			`{"id":"a","run":{"settled":"-1"}}`, `{"id":"a","run":{"settled":"-2"}}`},
		search.ByDeadline: {`{"id":"a","state":"queued","terms":{"deadline":"2025-12-31T00:00:00Z"}}`,
			`{"id":"a","state":"queued","terms":{"deadline":"2026-01-02T00:00:00Z"}}`,
			`{"id":"a","state":"failed","finished":"2026-01-01T00:00:00Z","terms":{"deadline":"2025-12-31T00:00:00Z"}}`,
			`{"id":"a","state":"queued"}`},
		search.ByName: {`{"id":"a"}`, `{"id":"a-1"}`, `{"id":"b"}`},
	} {
		for i := 1; i < len(rising); i++ {
			a, b := order.AppendKey(nil, job(rising[i-1]), now), order.AppendKey(nil, job(rising[i]), now)
			if bytes.Compare(a, b) >= 0 {
				t.Errorf("%s: %s does not come before %s", order, rising[i-1], rising[i])
			}
		}
	}
}
