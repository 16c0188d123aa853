//go:build !local

package server_test

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
)

// paid is the cost of jobs by their postings, and by their receipts.
type paid struct {
	receipts map[string]receipt.Receipt
	posted   map[[2]string]money.Amount // by job and instance; no job: idle time
}

// receipts waits until all machine time is billed, and fetches the receipts.
func (c *chaos) receipts() map[string]receipt.Receipt {
	list := map[string]receipt.Receipt{}
	for key, id := range c.known {
		if strings.HasPrefix(key, "q-") {
			continue // it never had a machine
		}
		for began := time.Now(); ; rest(50 * time.Millisecond) {
			if j, ok := c.job(id); ok && j.Closed {
				break
			}
			if time.Since(began) > time.Minute {
				c.t.Errorf("job %s is not closed", id)
				break
			}
		}
		var r receipt.Receipt
		if c.insist("GET", "/v1/jobs/"+id+"/receipt", nil, &r); r.Job != id {
			c.t.Errorf("job %s has no receipt: %+v", id, r)
		}
		list[id] = r
	}
	var v api.Verified
	if status := c.insist("GET", "/v1/ledger/verify", nil, &v); status != http.StatusOK || !v.OK {
		c.t.Errorf("the ledger is verified with %d: %+v", status, v)
	}
	var machines []api.Machine
	if c.insist("GET", "/v1/machines", nil, &machines); len(machines) > 0 {
		c.t.Errorf("machines are rented: %+v", machines)
	}
	return list
}

// add counts a posting.
func (p *paid) add(l ledger.Posting) {
	at := [2]string{l.Owner.Job, l.Owner.Instance}
	p.posted[at] = p.posted[at].Add(core.Cost(l))
}

// check compares each receipt with the postings of its job, machine by machine.
func (p *paid) check(c *chaos) {
	jobs, said := map[string]money.Amount{}, map[[2]string]money.Amount{}
	for id, r := range p.receipts {
		if err := r.Check(); err != nil || !r.Ledger.Agrees {
			c.t.Errorf("the receipt of %s: %v, and it agrees: %v", id, err, r.Ledger.Agrees)
		}
		for _, t := range r.Tries {
			if len(t.Nodes) == 0 {
				said[[2]string{id, t.Instance}] = said[[2]string{id, t.Instance}].Add(t.Cost)
			}
			for _, n := range t.Nodes {
				said[[2]string{id, n.Instance}] = said[[2]string{id, n.Instance}].Add(n.Cost)
			}
		}
	}
	idle, on := money.Amount{}, map[string]int{} // jobs by instance
	for at, sum := range p.posted {
		if jobs[at[0]] = jobs[at[0]].Add(sum); at[0] == "" {
			idle = idle.Add(sum)
		} else if said[at] != sum {
			c.t.Errorf("job %s has postings of %v for %s, its receipt says %v", at[0], sum, at[1], said[at])
		}
		if at[0] != "" {
			on[at[1]]++
		}
	}
	gangs := 0
	for id, r := range p.receipts {
		if jobs[id] != r.Cost {
			c.t.Errorf("job %s has postings of %v, its receipt says %v", id, jobs[id], r.Cost)
		}
		if len(r.Tries) > 0 && len(r.Tries[len(r.Tries)-1].Nodes) > 1 {
			gangs++
		}
	}
	maps.DeleteFunc(on, func(_ string, jobs int) bool { return jobs < 2 })
	c.t.Logf("%d receipts add up, %d of gangs; machines waited for %v, and %d served several jobs", len(p.receipts), gangs,
		idle, len(on))
	if idle.Sign() <= 0 || len(on) == 0 {
		c.t.Error("no machine waited for a job, or none served two: the test shows little")
	}
}
