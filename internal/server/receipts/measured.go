package receipts

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/view/convert"
)

// standardRuns is the default number of measured runs in a response.
const standardRuns = 200

// mostRuns is the largest number of measured runs in a response.
const mostRuns = 1000

// Measured returns the measurements of finished runs, newest first.
func (b *Service) Measured(w http.ResponseWriter, r *http.Request) {
	most := standardRuns
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > mostRuns {
			reply.FieldProblem(w, http.StatusBadRequest, "limit", "limit is not a number from 1 to 1000",
				"leave it out for the newest 200", nil)
			return
		}
	}
	list, err := b.measured(r.Context(), callerSees(r), r.URL.Query().Get("name"), most)
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read archived jobs", "try again", err)
		return
	}
	if r.URL.Query().Get("expected") != "" {
		b.expected(list)
	}
	for i := range list {
		text, ok, err := b.Control.Spec(r.Context(), list[i].Job)
		if err != nil {
			reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "try again", err)
			return
		}
		if j, wrong := spec.Decode(text); ok && wrong == nil { // skip a file of a newer release that this one cannot decode
			list[i] = list[i].With(j)
		}
	}
	reply.JSON(w, convert.To[[]client.Run](list))
}

func callerSees(r *http.Request) func(*core.Job) bool {
	c := auth.CallerOf(r)
	return func(j *core.Job) bool { return auth.Sees(c, j) }
}

// pieceOfJobs is the number of jobs read at once; the core cannot step meanwhile.
const pieceOfJobs = 20_000

// archivedBack bounds the newest archived jobs that a search for earlier runs reads: some tenths of a second.
const archivedBack = 2_000

// run is the measurement of a job, with its position in the order of submission.
type run struct {
	runhistory.Run
	order uint64
}

// runs collects the runs with one name.
type runs struct {
	sees  func(*core.Job) bool
	name  string
	most  int
	until time.Time
	sale  map[market.OfferID]market.Offer
	list  []run
}

// take adds the measurement of a job, and reports whether there are enough.
func (r *runs) take(j *core.Job) (enough bool) {
	if r.name != "" && j.Terms().Name != r.name && j.Terms().Name != runhistory.Profile(r.name) || !r.sees(j) {
		return false
	}
	if one, ok := runhistory.Of(j, r.until, func(id market.OfferID) (market.Offer, bool) {
		o, ok := r.sale[id]
		return o, ok
	}); ok {
		r.list = append(r.list, run{one, j.Order()})
	}
	return len(r.list) == r.most
}

// measured returns the measurements of the newest runs; a non-empty name selects the runs of jobs with that name.
func (b *Service) measured(ctx context.Context, sees func(*core.Job) bool, name string, most int,
) ([]runhistory.Run, error) {
	here := &runs{sees: sees, name: name, most: most}
	for before, more := uint64(0), true; more; {
		more = false
		b.Control.Read(func(m *core.Machine) {
			here.until, here.sale = m.Now(), map[market.OfferID]market.Offer{}
			for o := range m.Sale() {
				here.sale[o.ID] = o
			}
			looked := 0
			for j := range m.State().JobsTo(before) {
				if looked == pieceOfJobs {
					more = true
					return
				}
				looked++
				if before = j.Order(); here.take(j) {
					return
				}
			}
		})
	}
	past := *here
	past.list = nil
	for j, err := range b.Control.Past(ctx, view.ArchivedPage{Limit: archivedBack, Backwards: true}) {
		if err != nil {
			return nil, err
		}
		if past.take(j) {
			break
		}
	}
	all := slices.Concat(here.list, past.list)
	slices.SortStableFunc(all, func(a, b run) int { return cmp.Compare(b.order, a.order) })
	list := make([]runhistory.Run, 0, most)
	for _, r := range all[:min(most, len(all))] {
		list = append(list, r.Run)
	}
	return list, nil
}

// expected adds the cost that the first decision about each run expected.
func (b *Service) expected(list []runhistory.Run) {
	for i := range list {
		b.Control.Job(list[i].Job, func(_ *core.Machine, j *core.Job) {
			if cmp.Or(list[i].Currency, money.USD) == money.USD {
				list[i].ExpectedCost = j.Foreseen()
			}
		})
	}
}
