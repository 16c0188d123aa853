// Package groups shows, follows, ends and reviews groups of jobs: arrays, studies, pipelines and schedules.
package groups

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/wait"
)

// Or calls do if err reports an unknown job and a group has the name. Otherwise it returns err.
func Or(ctx context.Context, c *command.Client, id string, err error, do func(api.Group) error) error {
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.JobUnknown {
		return err
	}
	g, no := c.Group(ctx, id)
	if no != nil {
		return err
	}
	return do(g)
}

// Changing calls job if a job has the name, and group if a group has it. It looks before it changes something, because
// the audit trail has each refused change.
func Changing(ctx context.Context, c *command.Client, id string, job, group func() error) error {
	if _, err := c.Job(ctx, id); err != nil {
		return Or(ctx, c, id, err, func(api.Group) error { return group() })
	}
	return job()
}

// Commands returns the commands of this package.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{listCmd(a)}
}

func listCmd(a *command.App) *cobra.Command {
	return &cobra.Command{Use: "groups", Short: "List arrays, studies and pipelines with what they have spent",
		Args: command.Takes(), GroupID: command.GroupLook,
		Long: "Lists the arrays that scrimp run --array has submitted, the studies of scrimp tune and the runs of " +
			"scrimp pipeline: how many members they have, how many of these have succeeded or ended otherwise, and what they " +
			"have spent together. The commands status, wait, receipt, stop, cancel, approve and reject take a group as they " +
			"take a job; scrimp jobs --group lists its members." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			list, err := c.Groups(ctx)
			if err != nil {
				return err
			}
			return command.ShowEach(a, list, group.Groups(list, a.Place()))
		})}
}

// Kind returns the kind of a group with its article.
func Kind(g api.Group) string {
	if g.Kind == "array" {
		return "an array"
	}
	return "a " + g.Kind
}

// OfMember returns err for a command that takes one job, and if a group has the name, an error that names its members.
func OfMember(ctx context.Context, c *command.Client, id, use string, err error) error {
	return Or(ctx, c, id, err, func(g api.Group) error {
		if members, no := c.GroupReceipt(ctx, g.ID); no == nil && len(members.Members) > 0 {
			return fmt.Errorf("%s is %s: name a member, as in scrimp %s %s", g.ID, Kind(g), use, members.Members[0].ID)
		}
		return fmt.Errorf("%s is %s, and no member of it has begun: scrimp status %s says why", g.ID, Kind(g), g.ID)
	})
}

// Failed reports whether an ended group missed its purpose.
func Failed(g api.Group) bool {
	switch {
	case g.Study != nil:
		return g.Study.Best == nil
	case g.Pipeline != nil: // a gate may skip stages by design
		return slices.ContainsFunc(g.Pipeline.Stages, func(s api.StageState) bool {
			return s.State != "done" && s.State != "reused" && s.State != "skipped"
		})
	}
	return g.Succeeded < g.Members
}

// Submit submits a job as an array or a study.
func Submit(ctx context.Context, a *command.App, c *command.Client, s api.Submission, detach bool) error {
	g, err := c.SubmitGroup(ctx, s)
	switch {
	case err != nil:
		return err
	case detach:
		a.Waiting(ctx, c)
		return Print(a, g)
	}
	return followFrom(ctx, a, c, g.ID, &g)
}

// Print shows a group.
func Print(a *command.App, g api.Group) error {
	return a.Show(g, group.Group(g, a.Place()))
}

// End ends a group. For one that is over already while another of its name is open, it returns an error, because
// the user means the other.
func End(ctx context.Context, a *command.App, c *command.Client, id string, save bool) error {
	g, err := c.Group(ctx, id)
	if err == nil && g.State == "over" {
		if err := overAlready(ctx, c, g); err != nil {
			return err
		}
		a.Notef("%s is over already.\n", g.ID)
		return Print(a, g)
	}
	if err == nil {
		g, err = c.EndGroup(ctx, id, save)
	}
	if err != nil {
		return err
	}
	return Print(a, g)
}

// overAlready returns an error that names the open groups of the name of a group that is over, or nil if there is none.
func overAlready(ctx context.Context, c *command.Client, g api.Group) error {
	list, err := c.Groups(ctx)
	if err != nil {
		return err
	}
	var open []string
	for _, x := range list {
		if x.Name == g.Name && x.Of == "" && x.State != "over" {
			open = append(open, x.ID)
		}
	}
	switch len(open) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is over already; %s is open", g.ID, open[0])
	}
	return fmt.Errorf("%s is over already; %s are open", g.ID, strings.Join(open, ", "))
}

// Review approves or rejects a group.
func Review(ctx context.Context, a *command.App, c *command.Client, id, what, reason string) error {
	var g api.Group
	err := c.Do(ctx, http.MethodPost, "/v1/groups/"+url.PathEscape(id)+"/"+what, api.Review{Reason: reason}, &g)
	if err != nil {
		return err
	}
	return Print(a, g)
}

// Receipt shows what a group has cost.
func Receipt(ctx context.Context, a *command.App, c *command.Client, id string) error {
	r, err := c.GroupReceipt(ctx, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Print(r)
	}
	if r.Group.Kind == "pipeline" && r.Group.Pipeline == nil { // its stages say what the sample has cost
		if r.Group, err = c.Group(ctx, id); err != nil {
			return err
		}
	}
	a.Printf("%s", group.Receipt(r, a.Place()))
	if r.Group.Why == group.NoValues {
		lastOutput(ctx, a, c, r.Members)
	}
	return nil
}

// lastOutput prints the last line that the newest failed trial wrote, or the newest trial if none failed.
func lastOutput(ctx context.Context, a *command.App, c *command.Client, trials []api.GroupMember) {
	newest, failed := "", false
	for _, t := range trials {
		if is := t.State == "failed"; is || !failed {
			newest, failed = t.ID, failed || is
		}
	}
	if newest == "" {
		return
	}
	if lines := follow.LastLines(ctx, c, newest, 1); len(lines) > 0 {
		text := fmt.Sprintf("The last line of %s: %.200s", newest, show.Clean(lines[0]))
		a.Printf("%s", draw.Wrap("", text, a.Place().Columns()))
	}
}

// Follow shows the progress of a group until it is closed, and then its receipt.
func Follow(ctx context.Context, a *command.App, c *command.Client, id string) error {
	return followFrom(ctx, a, c, id, nil)
}

// followFrom is Follow for a group whose first state the server has just sent; nil: it has not.
func followFrom(ctx context.Context, a *command.App, c *command.Client, id string, first *api.Group) error {
	shown, stages := "", map[string]string{}
	const often, seldom = 100 * time.Millisecond, time.Second // a run without changes ends at once
	for failed, pause := 0, often; ; pause = min(2*pause, seldom) {
		g, err := next(ctx, c, id, &first)
		switch {
		case ctx.Err() != nil:
			a.Notef("\nDetached: %s goes on. scrimp wait %s waits for it, scrimp stop %s ends it.\n", id, id, id)
			return nil
		case err != nil:
			if failed++; failed > 20 {
				return fmt.Errorf("follow %s: %w", id, err)
			}
			if failed%4 == 0 { // another server takes over
				if another, err := a.Ensure(ctx, ""); err == nil {
					c = another
				}
			}
		default:
			failed = 0
			state := fmt.Sprint(g.State, g.Succeeded, g.Began, group.Progress(g, show.Place{Width: 40}))
			if g.Pipeline != nil {
				state = fmt.Sprint(g.State, g.Closed, stateOf(g.Pipeline))
			}
			if state != shown {
				shown = state
				switch {
				case a.JSON:
					err = a.Print(g)
				case g.Pipeline != nil && g.State != "awaits_approval":
					stageNews(a, g, stages)
				default:
					a.Notef("%s\n", group.Progress(g, a.Line()))
				}
			}
			if err != nil || g.Closed {
				return groupOver(ctx, a, c, g, err)
			}
		}
		_ = wait.For(ctx, pause)
	}
}

// next returns what the server has just sent, once, and then asks it.
func next(ctx context.Context, c *command.Client, id string, sent **api.Group) (api.Group, error) {
	if g := *sent; g != nil {
		*sent = nil
		return *g, nil
	}
	return c.Group(ctx, id)
}

func groupOver(ctx context.Context, a *command.App, c *command.Client, g api.Group, err error) error {
	switch {
	case err != nil || a.JSON:
	case g.Pipeline != nil:
		err = StageCosts(ctx, a, c, g.ID)
	default:
		err = Receipt(ctx, a, c, g.ID)
	}
	if err == nil && Failed(g) {
		return command.JobFailed
	}
	return err
}
