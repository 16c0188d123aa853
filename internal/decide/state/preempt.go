package state

import (
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// JobPreempted is the fact that a job must save and give its seat to a critical job. The job's drain follows it.
type JobPreempted struct {
	Job     string `json:"job"`
	Attempt string `json:"attempt"`
	By      string `json:"by"`             // the critical job
	Team    string `json:"team,omitempty"` // its team
	// Cost is the expected cost of the preemption: Lost, the work that is repeated, and Restart, the time of the
	// next start, both at the present price of the seat.
	Cost    money.Amount  `json:"cost"`
	Lost    time.Duration `json:"lost_ns,omitempty"`
	Restart time.Duration `json:"restart_ns,omitempty"`
	// Until is the time until which the job does not start again while the critical job still waits.
	Until time.Time `json:"until"`
}

// Fact implements Fact.
func (JobPreempted) Fact() string { return "job_preempted" }

func init() { reads[JobPreempted]() }

// Preempted is why a drain ends an attempt whose seat a critical job gets.
const Preempted = "preempted"

// DefaultPreemptAfter is the guaranteed minimum run of a job if the settings name none.
const DefaultPreemptAfter = 10 * time.Minute

// MinimumRun returns how long a program runs before a critical job may preempt it.
func (c *Config) MinimumRun() time.Duration {
	if c.PreemptAfter > 0 {
		return c.PreemptAfter
	}
	return c.Stretch(DefaultPreemptAfter)
}

// Preemption is why an attempt had to leave its seat to a critical job. It is never changed in place.
type Preemption struct {
	By      string        `json:"by"`             // the critical job
	Team    string        `json:"team,omitempty"` // its team
	At      time.Time     `json:"at"`
	Cost    money.Amount  `json:"cost"` // expected
	Lost    time.Duration `json:"lost_ns,omitempty"`
	Restart time.Duration `json:"restart_ns,omitempty"`
	Until   time.Time     `json:"until"`
}

// Claim lists the jobs that a critical job has preempted since its last request for a machine.
type Claim struct {
	Epoch int       `json:"epoch,omitempty"` // of the critical job at that time
	Until time.Time `json:"until,omitzero"`  // until then their seats are left for it
	Jobs  []string  `json:"jobs,omitempty"`  // replaced as a whole, never changed in place
}

func (s *State) preempted(f JobPreempted) {
	s.attempt(f.Attempt).r.Preemption = &Preemption{By: f.By, Team: f.Team, At: s.now, Cost: f.Cost, Lost: f.Lost,
		Restart: f.Restart, Until: f.Until}
	by := s.touched(f.By).runs()
	jobs := []string{f.Job}
	if c := &by.Claim; c.Epoch == by.Epoch && s.now.Before(c.Until) {
		jobs = slices.Concat(c.Jobs, jobs)
	}
	by.Claim = Claim{Epoch: by.Epoch, Until: later(by.Claim.Until, f.Until), Jobs: jobs}
}

// Preemption is why the attempt had to leave its seat to a critical job; nil: it did not have to.
func (a *Attempt) Preemption() *Preemption { return a.r.Preemption }

// Preempted returns how many attempts of the job were preempted.
func (j *Job) Preempted() (n int) {
	for _, a := range j.Attempts() {
		if a.r.Preemption != nil {
			n++
		}
	}
	return n
}

// Claims returns the jobs whose seats are left for this critical job at t; nil: none. They are those that it has
// preempted since it last requested a machine.
func (j *Job) Claims(t time.Time) []string {
	c := &j.run().Claim
	if j.r.State != Queued || c.Epoch != j.Epoch() || !t.Before(c.Until) {
		return nil
	}
	return c.Jobs
}

// LastClaim returns the jobs that this critical job preempted last; nil: none.
func (j *Job) LastClaim() []string { return j.run().Claim.Jobs }

// ClaimEnds returns until when the seats of its newest victims are left for this critical job; zero: it has none.
func (j *Job) ClaimEnds() time.Time { return j.run().Claim.Until }
