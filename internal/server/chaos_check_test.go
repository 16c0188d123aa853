//go:build !local

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/postgres"
	"scrimp/internal/store/sqlite"
)

func (c *chaos) open() store.Replica {
	c.t.Helper()
	if c.db == "" {
		s, err := sqlite.Open(c.dir)
		chaosMust(c.t, err)
		return s
	}
	s, err := postgres.Open(context.Background(), postgres.Default(c.db, c.dir))
	chaosMust(c.t, err)
	return s
}

// check compares the log with the acknowledged jobs and the rented machines.
func (c *chaos) check(inventory []engine.Instance, receipts map[string]receipt.Receipt) {
	t, s := c.t, c.open()
	defer func() { _ = s.Close() }()
	records, err := s.WholeRecords(context.Background(), 0, 10_000_000)
	chaosMust(t, err)
	by, over, posted := map[string]string{}, map[string]bool{}, map[string]money.Amount{}
	asked := map[string]int{} // number of machines of a launch, by allocation
	m, sums := state.New(), paid{receipts, map[[2]string]money.Amount{}}
	for n, r := range records {
		e, facts, err := replay.Decode(r)
		chaosMust(t, err)
		m.Replay(r.Seq, e, facts, r.Postings)
		for _, f := range facts {
			if f, ok := f.(state.AllocationRequested); ok && f.Instance == "" && m.Job(f.Job).Asked() != nil {
				asked[m.Job(f.Job).Asked().ID()] = f.Nodes - len(f.Keeps)
			}
		}
		for _, p := range r.Postings {
			posted[p.Owner.Instance] = posted[p.Owner.Instance].Add(core.Cost(p))
			sums.add(p)
		}
		switch b := e.Body.(type) {
		case core.JobSubmitted:
			if first, twice := by[e.Key]; twice {
				t.Errorf("key %s has %s and %s", e.Key, first, b.Job)
			}
			by[e.Key] = b.Job
			audited := false
			if n+1 < len(records) {
				var next core.Event
				chaosMust(t, json.Unmarshal(records[n+1].Event, &next))
				a, ok := next.Body.(core.Audited)
				audited = ok && a.Act.Object == b.Job && a.Act.Who == "ann"
			}
			if !audited {
				t.Errorf("event %d: nothing on record of %s", r.Seq, b.Job)
			}
		case core.JobEnded:
			over[b.Job] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.known)) {
		if id := by["ann/"+key]; id != c.known[key] {
			t.Errorf("%s was answered for key %s, the log has %q", c.known[key], key, id)
		}
	}
	for id := range c.ended {
		if !over[id] {
			t.Errorf("the end of %s was answered and is not there", id)
		}
	}
	c.checkMachines(inventory, asked, posted)
	sums.check(c)
	if err := verified(records); err != nil {
		t.Error(err)
	}
	if len(c.known) < 50 || len(inventory) < 3 {
		t.Errorf("%d jobs were answered and %d machines rented: the test shows little", len(c.known), len(inventory))
	}
	if c.cluster != nil {
		c.checkEpochs()
	}
	t.Logf("%d events, %d machines", len(records), len(inventory))
}

// checkMachines checks that each launch rented exactly its machines, all at once and only once, and that the ledger
// has what they were billed.
func (c *chaos) checkMachines(inventory []engine.Instance, asked map[string]int, posted map[string]money.Amount) {
	launches := map[string][]engine.Instance{}
	for _, i := range inventory {
		launches[i.Key] = append(launches[i.Key], i)
		bill := money.Amount{}
		for _, l := range i.Bill {
			bill = bill.Add(l.Amount)
		}
		if posted[i.ID] != bill {
			c.t.Errorf("%s (%s) was billed %v, the ledger has %v", i.ID, i.Key, bill, posted[i.ID])
		}
	}
	for key, list := range launches {
		if want := asked[list[0].Tags["scrimp-attempt"]]; len(list) != want || !list[0].Launched.Equal(list[len(list)-1].Launched) {
			c.t.Errorf("%s rented %d machines, want %d at once: %+v", key, len(list), want, list)
		}
	}
	if time.Since(c.began) > 50*time.Minute {
		return // a market lists ended machines for an hour
	}
	for id, sum := range posted {
		if !slices.ContainsFunc(inventory, func(i engine.Instance) bool { return i.ID == id }) {
			c.t.Errorf("the ledger has %v for %q, which nobody rented", sum, id)
		}
	}
}

// checkEpochs checks that no leader wrote after the next one had started.
func (c *chaos) checkEpochs() {
	out, err := c.cluster.Query(c.direct, "SELECT count(*) FROM (SELECT epoch, max(epoch) OVER (ORDER BY seq) AS "+
		"newest FROM event) e WHERE epoch < newest")
	chaosMust(c.t, err)
	if out != "0" {
		c.t.Errorf("%s events were written by a leader after the next had begun", out)
	}
	out, err = c.cluster.Query(c.direct, "SELECT count(DISTINCT epoch) FROM event")
	chaosMust(c.t, err)
	c.t.Logf("%s leaders", out)
}

func verified(records []store.Record) error {
	return ledger.Verify(func(yield func(ledger.Posting, error) bool) {
		for _, r := range records {
			for _, p := range r.Postings {
				if !yield(p, nil) {
					return
				}
			}
		}
	})
}

// restore restores the backup into an empty folder and, if there is one, an empty PostgreSQL database, and compares
// the hash.
func (c *chaos) restore(file string, want backup.Sum) {
	text, err := os.ReadFile(file)
	chaosMust(c.t, err)
	into := map[string]store.Replica{}
	into["sqlite"], err = sqlite.Open(c.t.TempDir())
	chaosMust(c.t, err)
	if c.cluster != nil {
		into["postgres"], err = postgres.Open(c.t.Context(),
			postgres.Default(c.cluster.Database(c.t), c.t.TempDir()))
		chaosMust(c.t, err)
		chaosMust(c.t, into["postgres"].TryLead(c.t.Context()))
	}
	for name, s := range into {
		got, err := backup.Restore(c.t.Context(), s, bytes.NewReader(text))
		chaosMust(c.t, errors.Join(err, s.Close()))
		if got != want {
			c.t.Errorf("restored into %s the backup of %+v is %+v", name, want, got)
		}
	}
}
