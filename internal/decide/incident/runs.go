package incident

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// prices watches the hourly price that a team pays for the same machine at the same capacity, and whether a team's
// attempts start on on-demand machines where they started on spot before.
type prices struct {
	of    map[[2]string]*rates
	jobs  map[string]bought // by job
	falls map[string]*fall
}

// rates holds the hourly price, slot by slot.
type rates struct {
	past        past
	hour        time.Time
	usual, most float64 // of the past, as of hour
	high        int     // consecutive slots above the usual
	stake       float64
	since       time.Time
}

// bought records the attempt and the capacity of a job's machine.
type bought struct {
	attempt, capacity string
	seen              time.Time
}

// fall measures the evidence that a team now buys on-demand where it bought spot: a CUSUM of log-likelihood ratios.
type fall struct {
	begun, onDemand float64 // attempts so far
	sure            float64
	since           time.Time
	stake           float64
	jobs            []string
	cheap           map[string]float64 // the newest spot price by SKU
}

func newPrices() rule {
	return &prices{map[[2]string]*rates{}, map[string]bought{}, map[string]*fall{}}
}

const (
	priceJump  = 1.3
	priceSlots = 2
	priceKnown = 72  // slots of use before a price is known
	fallShare  = 0.9 // share of attempts on on-demand during a fall-back
	fallSure   = 8.0 // log-likelihood ratio against the usual share
	onDemand   = "on-demand"
	spot       = "spot"
)

// sold is what machines of one kind cost in a slot, and the jobs that ran on them.
type sold struct {
	cost, hours float64
	jobs        []string
}

func (r *prices) slot(w *watch, list []piece) {
	now, groups := map[[2]string]*sold{}, map[[2]string]bool{}
	for i := range list {
		p := &list[i]
		if !p.Machine || !p.Price.Known || p.Planned || p.hours == 0 {
			continue
		}
		price := p.Price.Rate.Float()
		b := at(now, [2]string{p.Team, strings.Join(strings.Fields(p.Provider+" "+p.Region+" "+p.SKU+" "+p.Capacity), " ")})
		b.cost, b.hours, b.jobs = b.cost+float64(price*p.hours), b.hours+p.hours, append(b.jobs, p.Job)
		if p.Job != "" && (p.Capacity == spot || p.Capacity == onDemand) {
			r.buys(w, p, price, groups)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(now), compare) {
		b, s := now[k], at(r.of, k)
		r.jump(w, k, s, b.cost/b.hours, b.hours, b.jobs)
	}
	r.fallBacks(w)
	for job, b := range r.jobs {
		if w.now.Sub(b.seen) > 6*time.Hour {
			delete(r.jobs, job)
		}
	}
}

// fallBacks opens an alert for each team that surely buys on-demand now where it bought spot.
func (r *prices) fallBacks(w *watch) {
	for _, team := range slices.Sorted(maps.Keys(r.falls)) {
		if f := r.falls[team]; f.sure >= fallSure*w.factor(FallBack, team, team) {
			w.say(said{kind: FallBack, team: team, about: team, since: f.since, stake: f.stake, small: true, jobs: f.jobs,
				why: fmt.Sprintf("the last %d attempts that count began on on-demand instead of spot; before them it "+
					"was %.0f %%: spot has no capacity, or deadlines are near: see scrimp explain %s",
					len(f.jobs), 100*f.onDemand/f.begun, f.jobs[len(f.jobs)-1])})
		}
	}
}

// buys counts how a job's machine was bought, spot or on-demand. groups holds the groups that this slot has counted: a
// group decides once for all jobs that begin together.
func (r *prices) buys(w *watch, p *piece, price float64, groups map[[2]string]bool) {
	f := at(r.falls, p.Team)
	group := [2]string{p.Team, p.Group}
	before := r.jobs[p.Job]
	if before.attempt != p.Attempt || before.capacity != p.Capacity {
		if p.Group == "" || !groups[group] {
			f.begins(w, p)
		}
		groups[group] = true
	}
	if p.Capacity == spot {
		if f.cheap == nil {
			f.cheap = map[string]float64{}
		}
		f.cheap[p.SKU] = price
	} else if cheap := f.cheap[p.SKU]; f.sure > 0 && cheap > 0 && cheap < price {
		f.stake += p.cost * (1 - cheap/price)
	}
	r.jobs[p.Job] = bought{p.Attempt, p.Capacity, w.now}
}

// begins counts an attempt that starts on a machine.
func (f *fall) begins(w *watch, p *piece) {
	usual := max(0.02, min((f.onDemand+1)/(f.begun+4), 0.6))
	if p.Capacity == spot {
		f.sure += math.Log((1 - fallShare) / (1 - usual))
	} else {
		if f.sure <= 0 {
			f.since, f.stake, f.jobs = w.now.Add(-Slot), 0, nil
		}
		f.sure = min(f.sure+math.Log(fallShare/usual), fallSure*w.factor(FallBack, p.Team, p.Team)+3)
		f.jobs = append(f.jobs, p.Job)
	}
	if f.sure = max(0, f.sure); f.sure < fallSure/2 { // a possible fall-back does not count as usual
		f.begun++
		if p.Capacity == onDemand {
			f.onDemand++
		}
	}
}

// jump compares a price with the prices of the week before.
func (r *prices) jump(w *watch, k [2]string, s *rates, price, hours float64, jobs []string) {
	if hour := w.now.Truncate(time.Hour); hour.After(s.hour) {
		s.hour, s.usual, s.most = hour, s.past.quantile(0.5), s.past.most()
		s.past.drop(w.now, forget/2)
	}
	least := over(priceJump, w.factor(PriceJump, k[0], k[1])) * s.usual
	if s.past.n() < priceKnown || price < least || price <= 1.05*s.most {
		s.past.add(w.now, price)
		s.high, s.stake = 0, 0
		return
	}
	if s.high++; s.high == 1 {
		s.since = w.now.Add(-Slot)
	}
	if s.stake += (price - s.usual) * hours; s.high >= priceSlots {
		w.say(said{kind: PriceJump, team: k[0], about: k[1], since: s.since, stake: s.stake, small: true, jobs: jobs,
			why: fmt.Sprintf("an hour of %s costs %.3f, %.0f %% above the median of the week before: see scrimp explain JOB, "+
				"and scrimp offers for others", k[1], price, 100*(price/s.usual-1))})
	}
}

// runs watches recurring jobs: the cost, machine and length of each run.
type runs struct {
	live map[string]*run
	of   map[[2]string][]*run // finished runs by team and series
}

// run is one run of a recurring job.
type run struct {
	team, project, series, job string
	began, seen                time.Time
	cost, hours                float64
	dear                       int
	stake                      float64
	sku                        string
	planned, unknown           bool
}

func newRuns() rule { return &runs{map[string]*run{}, map[[2]string][]*run{}} }

const (
	runsKept   = 40
	runsFew    = 3   // earlier runs needed to compare a machine
	dearerBy   = 1.5 // factor on the highest hourly cost of the earlier runs
	longerBy   = 2.0
	longFew    = 7             // earlier runs needed to compare a length
	overAfter  = 2 * time.Hour // a run without cost for so long is finished
	creepRuns  = 10            // the newest runs, in which a creep may have started
	creepPast  = 14            // earlier runs needed
	creepSlack = 0.5           // standard deviations per run that count as noise
	creepSum   = 8.0           // the CUSUM, in standard deviations, from which it is a creep
	creepNoise = 0.02          // the least standard deviation, of the logarithm
	creepMost  = 3.0           // the most standard deviations that one run adds
	creepRise  = 1.06          // the least factor of the rise
)

func (r *runs) slot(w *watch, list []piece) {
	spent := map[string]float64{}
	rates := map[string]float64{}
	for i := range list {
		p := &list[i]
		if p.Series == "" || p.Job == "" {
			continue
		}
		r.add(w, p)
		spent[p.Job] += p.cost
		if p.Machine {
			rates[p.Job] = max(rates[p.Job], p.Price.Rate.Float())
		}
	}
	for _, job := range slices.Sorted(maps.Keys(r.live)) {
		j := r.live[job]
		switch {
		case w.now.Sub(j.seen) > overAfter:
			delete(r.live, job)
			r.over(w, j)
		case j.seen.Equal(w.now) && !j.planned:
			before := r.of[j.key()]
			r.dearer(w, j, before, rates[job], spent[job])
			r.longer(w, j, before)
		}
	}
	for k, list := range r.of {
		if n := len(list); n > 0 && w.isOpen(CostCreep, k[0], k[1]) && w.now.Sub(list[n-1].seen) < 3*24*time.Hour {
			w.open[key{CostCreep, k[0], k[1]}].seen = w.now // the alert stays open from run to run
		}
	}
}

// key is the team and the series of a run.
func (j *run) key() [2]string { return [2]string{j.team, j.series} }

// over keeps a run that is over, unless nothing can be compared with it.
func (r *runs) over(w *watch, j *run) {
	if j.planned || j.unknown || j.cost <= 0 {
		return
	}
	k := j.key()
	r.of[k] = append(r.of[k], j)
	r.of[k] = r.of[k][max(0, len(r.of[k])-runsKept):]
	r.creep(w, j, r.of[k])
}

// add adds a piece to the run of its job, and begins the run with its first piece.
func (r *runs) add(w *watch, p *piece) {
	j := r.live[p.Job]
	if j == nil {
		j = &run{team: p.Team, project: p.Project, series: p.Series, job: p.Job, began: w.now.Add(-Slot)}
		r.live[p.Job] = j
	}
	j.seen, j.cost, j.planned = w.now, j.cost+p.cost, j.planned || p.Planned
	if p.Machine {
		j.hours += p.hours
		j.sku = p.SKU
		j.unknown = j.unknown || !p.Price.Known
	}
}

// steady reports whether the earlier runs cost about the same. Runs that only share a name do not form a recurring
// job.
func steady(before []*run) bool {
	var costs past
	for _, b := range before {
		costs.add(b.seen, b.cost)
	}
	usual := costs.quantile(0.5)
	return costs.most() <= 3*usual && costs.quantile(0) >= usual/3
}

// dearer compares the hourly price with that of the earlier runs.
func (r *runs) dearer(w *watch, j *run, before []*run, rate, spent float64) {
	if len(before) < runsFew || !steady(before) {
		return
	}
	most := 0.0
	for _, b := range before {
		if b.hours > 0 {
			most = max(most, b.cost/b.hours)
		}
		if b.sku == j.sku {
			return // prices handles a new price of the same machine
		}
	}
	if most <= 0 || rate < over(dearerBy, w.factor(OtherMachine, j.team, j.series))*most {
		return
	}
	if j.dear++; j.dear == 1 {
		j.stake = 0
	}
	j.stake += spent * (1 - most/rate)
	if j.dear >= 2 {
		w.say(said{kind: OtherMachine, team: j.team, project: j.project, about: j.series, since: j.began, stake: j.stake,
			small: true, jobs: []string{j.job},
			why: fmt.Sprintf("%s runs on %s at %.2f an hour; its last %d runs had %s at %.2f at most: see scrimp explain %s",
				j.job, j.sku, rate, len(before), before[len(before)-1].sku, most, j.job)})
	}
}

// longer compares the machine time with that of the earlier runs.
func (r *runs) longer(w *watch, j *run, before []*run) {
	if len(before) < longFew || !steady(before) {
		return
	}
	most := 0.0
	for _, b := range before {
		most = max(most, b.hours)
	}
	if j.hours > over(longerBy, w.factor(LongRun, j.team, j.series))*most {
		w.say(said{kind: LongRun, team: j.team, project: j.project, about: j.series, since: j.began,
			stake: j.cost * (1 - most/j.hours), jobs: []string{j.job},
			why: fmt.Sprintf("%s has used %.1f machine hours, and none of its last %d runs more than %.1f: look at its "+
				"progress with scrimp status %s", j.job, j.hours, len(before), most, j.job)})
	}
}

// creep sums how far the newest runs lie above the earlier ones (a CUSUM of the logarithm of the cost).
func (r *runs) creep(w *watch, j *run, list []*run) {
	if len(list) < creepRuns+creepPast {
		return
	}
	var before past
	for _, b := range list[:len(list)-creepRuns] {
		before.add(b.seen, math.Log(b.cost))
	}
	usual := before.quantile(0.5)
	var off past
	for _, v := range before.values {
		off.add(w.now, math.Abs(v-usual))
	}
	noise := max(creepNoise, 1.4826*off.quantile(0.5))
	sum, stake, since := 0.0, 0.0, w.now
	var newest past
	for _, b := range list[len(list)-creepRuns:] {
		high := math.Log(b.cost) - usual
		newest.add(b.seen, high)
		if sum += min(creepMost, high/noise) - creepSlack; sum <= 0 {
			sum, stake = 0, 0
			continue
		}
		if stake == 0 {
			since = b.began
		}
		stake += b.cost - math.Exp(usual)
	}
	newest.values = newest.values[creepRuns-3:]
	rise := math.Exp(newest.quantile(0.5))
	f := w.factor(CostCreep, j.team, j.series)
	if sum > creepSum*f && rise >= over(creepRise, f) && newest.quantile(0) > noise {
		w.say(said{kind: CostCreep, team: j.team, project: j.project, about: j.series, since: since, stake: stake,
			jobs: []string{j.job}, why: fmt.Sprintf("a run of %s costs %.0f %% more than before %s, and more from run to "+
				"run: compare two with scrimp receipt", j.series, 100*(rise-1), since.UTC().Format(time.DateOnly))})
	}
}
