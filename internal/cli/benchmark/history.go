package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show/simulation"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
	"scrimp/internal/sim/queue"
	"scrimp/money"
)

// pastFlags select what simulate queue --history replays.
type pastFlags struct {
	history bool
	since   string
	types   []string
	rate    string   // dollars an hour; empty: the packing policies are replayed
	weights []string // TEAM=NUMBER
}

func (f *pastFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.history, "history", false,
		"replay the jobs of the server's log (default: the trace of --trace)")
	cmd.Flags().StringVar(&f.since, "since", "",
		"with --history: jobs submitted in this `span` until now, as in 30d (default all)")
	cmd.Flags().StringSliceVar(&f.types, "types", nil,
		"with --history: only these machine `types` (default all of the market)")
	cmd.Flags().StringVar(&f.rate, "rate", "",
		"with --history: `dollars` an hour of all machines together (default: no limit)")
	cmd.Flags().StringSliceVar(&f.weights, "weight", nil,
		"with --rate: `TEAM=NUMBER`, the weight of a team from 0.001 to 1000 (default 1)")
}

// check returns an error for flags that do not go together.
func (f *pastFlags) check(changed func(flag string) bool) error {
	if !f.history {
		for _, name := range []string{"since", "types", "rate", "weight"} {
			if changed(name) {
				return fmt.Errorf("--%s goes with --history", name)
			}
		}
		for _, name := range []string{"trace", "catalog"} {
			if !changed(name) {
				return fmt.Errorf("--%s: missing: name a CSV file, or replay the server's own jobs with --history", name)
			}
		}
		return nil
	}
	for _, name := range []string{"trace", "catalog", "arrival-column", "work-column", "interference", "first"} {
		if changed(name) {
			return fmt.Errorf("--history replays the server's own jobs on the machine types of its own market: leave out --%s",
				name)
		}
	}
	return f.checkRate(changed)
}

// pastQueue is what a replay of the server's log is made of.
type pastQueue struct {
	log     api.History
	jobs    []queue.Past // those of --since
	earlier int          // the others
	sales   []queue.Sale
}

// pastQueue requests the server's log and market.
func (a *app) pastQueue(ctx context.Context, f *pastFlags) (h pastQueue, err error) {
	since, err := f.span()
	if err != nil {
		return h, err
	}
	client, server, err := a.Connect(ctx, "")
	if err != nil {
		return h, err
	}
	if err := client.Do(ctx, http.MethodGet, "/v1/history", nil, &h.log); err != nil {
		return h, err
	}
	if h.sales, err = f.sales(h.log.Trace); err != nil {
		return h, err
	}
	for _, j := range h.log.Jobs {
		if since > 0 && j.Submitted.Before(server.Market.Now.Add(-since)) {
			h.earlier++
			continue
		}
		h.jobs = append(h.jobs, pastJob(j))
	}
	return h, nil
}

// nothing is the error of a log that has no job to replay.
func (h *pastQueue) nothing(left queue.LeftOut) error {
	return fmt.Errorf("no job of the log can be replayed%s: run some that report progress, then ask again",
		leftText(left, h.earlier, h.log.Others))
}

// describe says which jobs and machine types of the log the pools have.
func (h *pastQueue) describe(pools []queue.Pool, left queue.LeftOut) (v *simulation.PastQueue, jobs int) {
	v = &simulation.PastQueue{Omitted: left, Earlier: h.earlier, Failed: h.log.Others, Types: []string{}}
	played := map[string]bool{}
	for _, p := range pools {
		jobs += len(p.Jobs)
		for _, j := range p.Jobs {
			played[j.ID] = true
		}
		for _, t := range p.Types {
			v.Types = append(v.Types, t.Name)
		}
	}
	for _, j := range h.log.Jobs {
		if played[j.ID] {
			v.PaidExact = v.PaidExact.Add(j.Cost)
		}
	}
	v.Paid = v.PaidExact.Float()
	return v, jobs
}

// replayHistory replays the jobs of the server's log under each policy.
func (a *app) replayHistory(ctx context.Context, f pastFlags, c queue.Config, names []string) error {
	h, err := a.pastQueue(ctx, &f)
	if err != nil {
		return err
	}
	pools, left := queue.Pools(h.jobs, h.sales)
	if len(pools) == 0 {
		return h.nothing(left)
	}
	answer := simulation.QueueReplay{Factor: c.Deadline}
	answer.History, answer.Jobs = h.describe(pools, left)
	tell := a.Counter()
	for i, name := range names {
		tell("policies", i, len(names))
		var runs []queue.Result
		for _, p := range pools {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c.Policy, c.Jobs, c.Types = name, p.Jobs, p.Types
			runs = append(runs, queue.Run(c))
		}
		answer.Policies = append(answer.Policies, simulation.QueuePolicyOf(queue.Merge(runs)))
	}
	tell("policies", len(names), len(names))
	return a.Show(answer, answer.Text(a.Place()))
}

// span parses --since; zero: all jobs.
func (f *pastFlags) span() (time.Duration, error) {
	if f.since == "" {
		return 0, nil
	}
	d, err := spec.ParseDuration(f.since)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--since %q is not a span above zero, such as 30d", f.since)
	}
	return d, nil
}

// pastJob returns what a replay needs of a past job.
func pastJob(j api.PastJob) queue.Past {
	need := j.Terms.Need
	p := queue.Past{ID: j.ID, Name: j.Terms.Name, Image: need.Image, Submitted: j.Submitted, Start: j.Restart,
		Nodes: j.Terms.Nodes, CPUs: need.CPUs, Memory: max(need.Memory, need.Footprint.Machine),
		Accelerator: need.Accelerator, Accelerators: need.Accelerators, Team: j.Terms.Owner.Team, Priority: j.Terms.Priority}
	if j.Known {
		p.Work = j.Terms.Work
	}
	return p
}

// sales returns the on-demand offers of a recorded market at their last price, those that --types names.
func (f *pastFlags) sales(t api.Trace) (list []queue.Sale, err error) {
	var names []string
	for _, l := range t.Lines {
		o := l.Offer
		if string(o.Capacity) != string(market.OnDemand) || len(l.Price) == 0 || o.Currency != money.USD {
			continue
		}
		names = append(names, o.Machine)
		if len(f.types) == 0 || slices.Contains(f.types, o.Machine) {
			list = append(list, queue.Sale{Name: o.Machine, CPUs: o.CPUs, Memory: o.Memory, Accelerator: o.Accelerator,
				Accelerators: o.Accelerators, Price: l.Price[len(l.Price)-1].Rate})
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil, errors.New("the server's log has no on-demand machine with a price in dollars: scrimp offers lists " +
			"what it has seen")
	}
	for _, name := range f.types {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--types %q is not an on-demand machine type of the server's market: write one of %s", name,
				strings.Join(names, ", "))
		}
	}
	return list, nil
}

// leftText says in parentheses which jobs a replay leaves out.
func leftText(left queue.LeftOut, earlier, failed int) string {
	if list := simulation.Omitted(left, earlier, failed); len(list) > 0 {
		return " (" + strings.Join(list, ", ") + ")"
	}
	return ""
}
