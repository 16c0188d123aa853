package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/job/spec"
	"scrimp/internal/work/commit"
)

func (a *app) historyCmd() *cobra.Command {
	var since, capacity string
	cmd := &cobra.Command{
		Use: "history", Short: "Write the machines that your jobs used in each hour",
		Long: `Writes a demand file to stdout from the receipts of the jobs that you see: for each kind of machine,
how many were in use in each hour, rounded up. A machine that jobs shared counts once; one that
waited for a job does not.` +
			command.PlainExit,
		Example: "  scrimp commit history --since 400d > demand.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			span, err := spec.ParseDuration(since)
			if err != nil || span < time.Hour {
				return fmt.Errorf("--since %q is no span of an hour or more, such as 400d", since)
			}
			if capacity != "all" && capacity != "on-demand" && capacity != "spot" && capacity != "reserved" {
				return fmt.Errorf("--capacity %q is none of on-demand, spot, reserved, all", capacity)
			}
			return a.history(cmd.Context(), span, capacity)
		},
	}
	cmd.Flags().StringVar(&since, "since", "400d", "`span` until now")
	cmd.Flags().StringVar(&capacity, "capacity", "on-demand", "`kind` of capacity to count: on-demand, spot, reserved "+
		"or all")
	return cmd
}

func (a *app) history(ctx context.Context, span time.Duration, capacity string) error {
	c, err := a.Open(ctx)
	if err != nil {
		return err
	}
	v, err := c.Server(ctx)
	if err != nil {
		return err
	}
	now := v.Market.Now
	from := now.Add(-span)
	var stays []commit.Stay
	for j, err := range c.Jobs(ctx) {
		if err != nil {
			return err
		}
		// Only where the market's clock is the real one do both times compare.
		if v.Market.Speed == 1 && j.Finished != nil && j.Finished.Before(from) {
			continue
		}
		r, err := c.Client.Receipt(ctx, j.ID)
		if problem, is := errors.AsType[*api.Problem](err); is && problem.Status == 404 {
			continue // it had no machine yet
		} else if err != nil {
			return err
		}
		stays = append(stays, staysOf(r, capacity, now)...)
	}
	if len(stays) == 0 {
		return fmt.Errorf("no job used a machine with --capacity %s since %s: choose another, or a longer --since", capacity,
			from.UTC().Format(time.DateOnly))
	}
	first := slices.MinFunc(stays, func(a, b commit.Stay) int { return a.From.Compare(b.From) }).From
	if first.After(from) { // what lies before the first job is no demand of zero: nothing is known of it
		from = first
	}
	d, err := commit.Hourly(stays, from, now)
	if err != nil {
		return err
	}
	return a.write(d)
}

// staysOf returns the stays of a job's machines. One without an end is still in use.
func staysOf(r api.Receipt, capacity string, now time.Time) (list []commit.Stay) {
	for _, t := range r.Tries {
		if capacity != "all" && t.Capacity != capacity || t.From.IsZero() {
			continue
		}
		machines := t.Nodes
		if len(machines) == 0 {
			machines = []api.Node{{Instance: t.Instance, From: t.From, Until: t.Until}}
		}
		for _, m := range machines {
			if m.Until.IsZero() {
				m.Until = now
			}
			kind := strings.TrimSuffix(t.Offer, "/"+t.Capacity)
			list = append(list, commit.Stay{Region: kind, Machine: m.Instance, From: m.From, Until: m.Until})
		}
	}
	return list
}

// write writes a demand file, or with --json one object for each region.
func (a *app) write(d commit.Demand) error {
	head := "hour"
	for _, r := range d.Regions {
		if a.JSON {
			if err := a.Print(struct {
				Region string    `json:"region"`
				Start  time.Time `json:"start"`
				Units  []int64   `json:"units"`
			}{r.Name, d.Calendar.Zero, r.Units}); err != nil {
				return err
			}
		}
		head += "," + r.Name
	}
	if a.JSON {
		return nil
	}
	a.Printf("%s\n", head)
	for h := range d.Hours {
		line := d.Calendar.Zero.Add(time.Duration(h) * time.Hour).Format(time.RFC3339)
		for _, r := range d.Regions {
			line += fmt.Sprintf(",%d", r.Units[h])
		}
		a.Printf("%s\n", line)
	}
	return nil
}
