package savings

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

// mostPlayed bounds the jobs of a currency that are simulated for a recommendation, the costliest first.
const mostPlayed = 20

// costliest returns the jobs with the most machine time that counts, in dollars, at most n.
func costliest(costs []recommend.Cost, n int, counts func(*recommend.Cost) bool) []string {
	spent := map[string]money.Amount{}
	for i := range costs {
		if c := &costs[i]; c.Job != "" && c.Time > 0 && counts(c) {
			spent[c.Job] = spent[c.Job].Add(c.Amount)
		}
	}
	list := slices.SortedFunc(maps.Keys(spent), func(a, b string) int {
		return cmp.Or(spent[b].Cmp(spent[a]), cmp.Compare(a, b))
	})
	return list[:min(len(list), n)]
}

// onSpot simulates the jobs that ran on demand and resume from checkpoints, once on demand and once on spot, with the
// work that they did in the span. It returns the share of the cost that spot saves of each.
func (d *Desk) onSpot(r *http.Request, in *recommend.Input) (map[string]float64, error) {
	shares := map[string]float64{}
	if d.Cheaper == nil || in.Currency != money.USD {
		return shares, nil
	}
	may := func(c *recommend.Cost) bool { return c.Capacity == recommend.OnDemand && in.Jobs[c.Job].Saves }
	useful := map[string]time.Duration{}
	for i := range in.Costs {
		if c := &in.Costs[i]; may(c) && c.Use == recommend.Useful {
			useful[c.Job] += c.Time
		}
	}
	jobs := slices.DeleteFunc(costliest(in.Costs, mostPlayed, may), func(job string) bool { return useful[job] <= 0 })
	work := map[string]time.Duration{} // at speed 1, as job files say it
	err := d.Books.EachJob(r.Context(), jobs, func(j *core.Job) {
		if a := j.Attempt(); a != nil {
			work[j.ID()] = time.Duration(float64(useful[j.ID()]) * cmp.Or(a.Speed(), 1) / float64(a.Nodes()))
		}
	})
	if err != nil {
		return nil, err
	}
	var pairs [][2]spec.Job
	var of []string
	for _, job := range jobs {
		text, known, err := d.Control.Spec(r.Context(), job)
		if err != nil {
			return nil, err
		}
		j, _, err := spec.ParseJSON(spec.Read, text, "", d.now())
		if known && err == nil && work[job] > 0 { // a file of an older release may be unreadable
			pairs = append(pairs, [2]spec.Job{bought(j, recommend.OnDemand, work[job]), bought(j, recommend.Spot, work[job])})
			of = append(of, job)
		}
	}
	for i, share := range d.Cheaper(r, pairs) {
		if share != nil {
			shares[of[i]] = *share
		}
	}
	return shares, nil
}

// bought returns the job with the work, bought as capacity alone, without what would end or delay it.
func bought(j spec.Job, capacity string, work time.Duration) spec.Job {
	j.Work, j.Deadline, j.Window = spec.Work{Time: spec.Duration(work)}, spec.Deadline{}, ""
	j.Budget, j.Ladder = spec.Budget{}, nil
	j.Resources.Capacity = []string{capacity}
	j.AnyOf = slices.Clone(j.AnyOf)
	for i := range j.AnyOf {
		if !j.AnyOf[i].Place() {
			j.AnyOf[i].Resources.Capacity = []string{capacity}
		}
	}
	return j
}
