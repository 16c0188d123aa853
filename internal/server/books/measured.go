package books

import (
	"cmp"
	"net/http"
	"strconv"

	"scrimp/client"
	"scrimp/internal/api/convert"
	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/measured"
	"scrimp/internal/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/spec"
)

// standardRuns is how many measured runs are answered with where nobody says.
const standardRuns = 200

// mostRuns is with how many at most.
const mostRuns = 1000

// Measured answers with what runs that are over have measured, newest first.
func (b *Books) Measured(w http.ResponseWriter, r *http.Request) {
	most := standardRuns
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > mostRuns {
			reply.FieldProblem(w, http.StatusBadRequest, "limit", "limit is not a number from 1 to 1000",
				"leave it out for the newest 200", nil)
			return
		}
	}
	list := b.measured(callerSees(r), r.URL.Query().Get("name"), most)
	if r.URL.Query().Get("expected") != "" {
		b.expected(list)
	}
	for i := range list {
		text, ok, err := b.Control.Spec(r.Context(), list[i].Job)
		if err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "the log was not read", "ask again", err)
			return
		}
		if j, wrong := spec.Decode(text); ok && wrong == nil { // a file of a release that knew more is passed over
			list[i] = list[i].With(j)
		}
	}
	reply.JSON(w, convert.To[[]client.Run](list))
}

func callerSees(r *http.Request) func(*core.Job) bool {
	c := auth.CallerOf(r)
	return func(j *core.Job) bool { return auth.Sees(c, j) }
}

// pieceOfJobs is how many jobs are looked at with no step meanwhile.
const pieceOfJobs = 20_000

// measured is what the newest runs have measured, of one job's name where it is given.
func (b *Books) measured(sees func(*core.Job) bool, name string, most int) []measured.Run {
	list := []measured.Run{}
	for before, more := "", true; more && len(list) < most; {
		more = false
		b.Control.Read(func(m *core.Machine) {
			offers := map[market.OfferID]market.Offer{}
			for o := range m.Sale() {
				offers[o.ID] = o
			}
			jobs, ok := m.JobsBefore(before)
			if !ok {
				return
			}
			looked := 0
			for j := range jobs {
				if looked == pieceOfJobs || len(list) == most {
					more = true
					return
				}
				looked++
				before = j.ID()
				if name != "" && j.Terms().Name != name && j.Terms().Name != measured.Profile(name) || !sees(j) {
					continue
				}
				if run, ok := measured.Of(j, m.Now(), func(id market.OfferID) (market.Offer, bool) {
					o, ok := offers[id]
					return o,
						ok
				}); ok {
					list = append(list, run)
				}
			}
		})
	}
	return list
}

// expected adds what the runs were expected to cost when they were first decided.
func (b *Books) expected(list []measured.Run) {
	b.Control.Read(func(m *core.Machine) {
		for i := range list {
			if j, ok := m.Job(list[i].Job); ok && cmp.Or(list[i].Currency, money.USD) == money.USD {
				list[i].ExpectedCost = j.Foreseen()
			}
		}
	})
}
