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

// mostWork bounds the simulated work of a job: what a change saves is a share, and longer runs would take the time of
// other jobs.
const mostWork = 24 * time.Hour

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

// play simulates what ran on demand and resumes from checkpoints on spot, and what ran on spot at an interval of its
// file with the interval that scrimp picks.
func (d *Service) play(r *http.Request, in *recommend.Input) (err error) {
	in.OnSpot, err = d.played(r, in, recommend.OnDemand, func(j spec.Job) spec.Job {
		j.Resources.Capacity = []string{recommend.Spot}
		return j
	})
	if err == nil {
		in.OnInterval, err = d.played(r, in, recommend.Spot, func(j spec.Job) spec.Job {
			j.Checkpoint.Interval = ""
			return j
		})
	}
	return err
}

// played simulates the jobs that resume and ran on a capacity, as they were and changed, with the work that they did in
// the span. It returns the share of the cost that the change saves of each.
func (d *Service) played(r *http.Request, in *recommend.Input, capacity string, change func(spec.Job) spec.Job) (
	shares map[string]float64, err error) {
	shares = map[string]float64{}
	if d.Cheaper == nil || in.Currency != money.USD {
		return shares, nil
	}
	may := func(c *recommend.Cost) bool { return c.Capacity == capacity && in.Jobs[c.Job].Saves }
	useful := map[string]time.Duration{}
	for i := range in.Costs {
		if c := &in.Costs[i]; may(c) && c.Use == recommend.Useful {
			useful[c.Job] += c.Time
		}
	}
	jobs := slices.DeleteFunc(costliest(in.Costs, mostPlayed, may), func(job string) bool { return useful[job] <= 0 })
	work := map[string]time.Duration{} // at speed 1, as job files say it
	err = d.Books.EachJob(r.Context(), jobs, func(j *core.Job) {
		if a := j.Attempt(); a != nil {
			speed := cmp.Or(a.Speed(), 1) / float64(a.Nodes())
			work[j.ID()] = min(mostWork, time.Duration(float64(useful[j.ID()])*speed))
		}
	})
	if err != nil {
		return nil, err
	}
	var pairs [][2]spec.Job
	var saves []time.Duration
	var of []string
	for _, job := range jobs {
		text, known, err := d.Control.Spec(r.Context(), job)
		if err != nil {
			return nil, err
		}
		j, _, err := spec.ParseJSON(spec.Read, text, "", d.now())
		if !known || err != nil || work[job] <= 0 { // a file of an older release may be unreadable
			continue
		}
		before := bought(j, capacity, work[job])
		after := change(before)
		if i := j.Checkpoint.Interval; capacity == recommend.Spot && (i == "" || i == "auto") {
			shares[job] = 0
			continue
		}
		pairs = append(pairs, [2]spec.Job{before, after})
		saves, of = append(saves, in.Jobs[job].SaveCost), append(of, job)
	}
	for i, share := range d.Cheaper(r, pairs, saves) {
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
