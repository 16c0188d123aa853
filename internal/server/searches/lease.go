package searches

import (
	"fmt"
	"net/http"
	"unicode"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/reply"
)

// Bounds of the programs of a search.
const (
	mostProgram = 100    // bytes of a program's name
	mostLeases  = 20_000 // programs that take a worker, one after the other, since each is stored
)

// lease says which program trains the trials of a worker: the last known one that asked as this worker. A program that
// was killed starts again with another name, so the newest one has the lease, and the values of the one before are
// refused. Two loops that both say they are worker 0 thus never train one trial unnoticed.
type lease struct {
	Program string `json:"program"`
	Job     string `json:"of_job,omitempty"` // ID of the job that it is of; empty: it is of none
}

// named refuses the name of a program that is too long or not printable.
func named(program string) *reply.Refusal {
	bad := len(program) > mostProgram
	for _, r := range program {
		bad = bad || !unicode.IsPrint(r)
	}
	if !bad {
		return nil
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "program",
		Title: "the program's name is not valid",
		Fix:   fmt.Sprintf("write up to %d printable characters, another name for each start of the program", mostProgram)}
}

// leases gives the worker to the program that asks, unless a job that still runs has it. It returns the lease to store,
// nil for none, and a note for a program that takes the place of another one. The caller holds s.mu.
func (d *Service) leases(s *search, a asker, b client.AskTrial) (*lease, string, *reply.Refusal) {
	if b.Program == "" {
		return nil, "", named(b.Program)
	}
	if no := named(b.Program); no != nil {
		return nil, "", no
	}
	before, had := s.lease[b.Worker]
	now := lease{b.Program, a.job}
	switch {
	case had && before == now:
		return nil, "", nil
	case s.leased >= mostLeases:
		return nil, "", &reply.Refusal{Status: http.StatusConflict, Field: "program", Title: fmt.Sprintf("%d programs have "+
			"asked this search, and more may not", mostLeases), Fix: "keep the name of a program while it runs"}
	case !had:
		return &now, "", nil
	case before.Job != "" && before.Job != a.job && d.runs(before.Job):
		return nil, "", &reply.Refusal{Status: http.StatusConflict, Field: "worker", Title: fmt.Sprintf("the job %s trains "+
			"the trials of worker %d, and it is not over", before.Job, b.Worker), Fix: s.another(b.Worker)}
	}
	if a.job != "" && before.Job == a.job {
		return &now, "", nil // the job's next attempt goes on
	}
	return &now, fmt.Sprintf("another program was worker %d before this one: if it still runs, its next value is "+
		"refused. To train with both, %s", b.Worker, s.another(b.Worker)), nil
}

// another says how a second program gets a number of its own.
func (s *search) another(worker int) string {
	workers := s.plan.Spec.Workers
	for n := range workers {
		if _, taken := s.lease[n]; !taken && n != worker {
			return fmt.Sprintf("give one of them the free number %d: worker=%d (scrimp tune ask --worker %d)", n, n, n)
		}
	}
	return fmt.Sprintf("open a search with more workers than %d, and give each program a number of its own: worker=%d, "+
		"workers=%d (scrimp tune ask --worker %d, with parallel: %d)", workers, workers, workers+1, workers, workers+1)
}

// runs reports whether a job exists and is not over.
func (d *Service) runs(id string) (live bool) {
	d.Control.Read(func(m *core.Machine) {
		if j, known := m.Job(id); known {
			live = j.Finished().IsZero()
		}
	})
	return live
}

// lost refuses the value of a program whose worker another program has taken. The caller holds s.mu.
func (s *search) lost(b client.TellTrial) *reply.Refusal {
	if no := named(b.Program); no != nil {
		return no
	}
	if b.Program == "" || b.Trial < 0 || b.Trial >= len(s.plan.Trials) {
		return nil // an unknown trial has an error of its own
	}
	worker := s.plan.Trials[b.Trial].Worker
	if has, known := s.lease[worker]; !known || has.Program == b.Program {
		return nil
	}
	for _, other := range s.lease {
		if other.Program == b.Program {
			return nil // the searcher has moved the trial from one of its workers to another
		}
	}
	return &reply.Refusal{Status: http.StatusConflict, Field: "worker", Title: fmt.Sprintf("another program has asked as "+
		"worker %d since, and trains trial %d now", worker, b.Trial), Fix: "end one of the two programs, or " +
		s.another(worker)}
}
