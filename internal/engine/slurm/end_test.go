package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/command"
	"scrimp/internal/engine/slurm/record"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// A gang's machine that ends before the others costs its node as long as Slurm keeps it: together the machines cost
// as much as the allocation.
func TestBills_OfAGangAddUpToTheAllocation(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &record.Record{Order: order.Order{Key: "k", Nodes: 2, Rate: 3_600_000_000_007, Priced: true, Currency: "USD"},
		Start: start, End: start.Add(time.Hour + time.Second), Ends: []record.End{{Rank: 0,
			At: start.Add(time.Hour + time.Second)}, {Rank: 1, At: start.Add(17 * time.Minute)}}, Closed: true}
	whole := r.Rate.Until(time.Hour + time.Second)
	for n := range r.Ends {
		sum := whole.Sub(whole)
		for _, l := range r.Lines(&r.Ends[n]) {
			sum = sum.Add(l.Amount)
		}
		if sum != whole {
			t.Errorf("rank %d is billed %v of %v", r.Ends[n].Rank, sum, whole)
		}
	}
	d := &Driver{store: record.Store{Engine: "hpc"}, records: map[string]*record.Record{"k": r}}
	if bills, err := d.Bills(t.Context(), start); err != nil || len(bills) != 1 || len(bills[0].Lines) != 2 {
		t.Errorf("%+v, %v", bills, err)
	}
}

// A node that fails to report a job's end leaves the job COMPLETING for minutes. A machine that has recorded its own
// end has ended all the same, at Slurm's time and for the recorded cause.
func TestCompleting_EndsAMachineThatRecordedItsEnd(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := start.Add(17 * time.Minute)
	for name, c := range map[string]struct {
		files []string
		given []int
		nodes int
		cause engine.Cause // empty: not ended
	}{
		"it was taken":             {[]string{"notice", "end.0"}, nil, 1, engine.Interrupted},
		"its agent has ended":      {[]string{"end.0"}, nil, 1, engine.Stopped},
		"it was given back":        {[]string{"notice", "end.0"}, []int{0}, 1, engine.Terminated},
		"nothing of it is written": {nil, nil, 1, ""},
		"rank 1 goes on":           {[]string{"notice", "end.0"}, nil, 2, ""},
		"all ranks were taken":     {[]string{"notice", "end.0", "end.1"}, nil, 2, engine.Interrupted},
	} {
		d := &Driver{store: record.Store{Engine: "hpc", Dir: t.TempDir()}}
		r := &record.Record{Order: order.Order{Key: "k", Nodes: c.nodes, Currency: "USD"}, Name: "scrimp-k", Start: start, Job: "7",
			Given: c.given}
		must.Do(t, os.MkdirAll(d.store.Folder(r.Name), 0o700))
		for _, f := range c.files {
			must.Do(t, os.WriteFile(filepath.Join(d.store.Folder(r.Name), f), []byte(strconv.FormatInt(end.Unix()-2, 10)),
				0o600))
		}
		d.takes(r, &scheduler.Job{ID: "7", State: "COMPLETING", Start: start, End: end})
		if r.Closed != (c.cause != "") {
			t.Errorf("%s: ended: %v", name, r.Closed)
		}
		for k, i := range d.store.Instances(r) {
			cause := c.cause
			if c.nodes == 2 && k == 0 {
				cause = engine.Interrupted // by itself, too
			}
			if i.Cause != cause || (i.State == engine.Ended) != (cause != "") || r.Closed && !r.End.Equal(end) {
				t.Errorf("%s: %+v at %v", name, i, r.End)
			}
		}
	}
}

// Another engine may use the same cluster as the same user: its jobs are neither listed nor ended here.
func TestJobs_OfAnotherEngineAreIgnored(t *testing.T) {
	var ended []string
	d, err := newDriver("hpc", setting.With{}, t.TempDir(), slog.New(slog.DiscardHandler))
	must.Do(t, err)
	d.slurm = &command.Client{Run: func(_ context.Context, name string, args ...string) (string, error) {
		if name == "scancel" {
			ended = append(ended, args...)
		}
		var b strings.Builder
		for id, offer := range map[string]market.OfferID{"5": "hpc/p/4c-1g/on-demand", "6": "hpc2/p/4c-1g/on-demand"} {
			r := record.Record{Order: order.Order{Key: "k" + id, Offer: offer, Nodes: 1, Currency: "USD"}, Name: record.NameOf("k" + id)}
			fmt.Fprintf(&b, "%s|RUNNING|None|1700000000|0|n1|%s|%s\n", id, r.Name, r.Comment())
		}
		return b.String(), nil
	}}
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != "hpc-5-0" || list[0].Key != "k5" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := d.Terminate(t.Context(), "hpc-6-0"); !errors.Is(err, engine.ErrNotFound) || len(ended) > 0 {
		t.Errorf("another engine's: %v, and ended is %v", err, ended)
	}
	if err := d.Terminate(t.Context(), "hpc-5-0"); err != nil || len(ended) != 1 {
		t.Errorf("our own: %v, and ended is %v", err, ended)
	}
}
