package jobs

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
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/wait"
)

// together holds the flags that make a job depend on others.
type together struct{ after []string }

func (t *together) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&t.after, "after", nil, "begin after this `job` or array has succeeded, or, as JOB:any, "+
		"is over (may be repeated; default: at once)")
	_ = cmd.RegisterFlagCompletionFunc("after", cobra.NoFileCompletions)
}

// valid refuses empty flags: an unset shell variable must not drop a dependency.
func (t *together) valid(cmd *cobra.Command) error {
	for _, name := range []string{"array", "after"} {
		if v := cmd.Flag(name).Value.String(); cmd.Flag(name).Changed && (v == "" || v == "[]") {
			return fmt.Errorf("--%s is empty: write what it is, or leave the flag out", name)
		}
	}
	return nil
}

// orGroup calls do if err reports an unknown job and a group has the name. Otherwise it returns err.
func orGroup(ctx context.Context, c *command.Client, id string, err error, do func(api.Group) error) error {
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Code != api.JobUnknown {
		return err
	}
	g, no := c.Group(ctx, id)
	if no != nil {
		return err
	}
	return do(g)
}

func (a *app) groupsCmd() *cobra.Command {
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
			if !a.JSON {
				a.Printf("%s", group.Groups(list, a.Place()))
				return nil
			}
			for _, g := range list {
				if err := a.Print(g); err != nil {
					return err
				}
			}
			return nil
		})}
}

// kindOf returns the kind of a group with its article.
func kindOf(g api.Group) string {
	if g.Kind == "array" {
		return "an array"
	}
	return "a " + g.Kind
}

// ofMember returns err for a command that takes one job, and if a group has the name, an error that names its members.
func ofMember(ctx context.Context, c *command.Client, id, use string, err error) error {
	return orGroup(ctx, c, id, err, func(g api.Group) error {
		if members, no := c.GroupReceipt(ctx, g.ID); no == nil && len(members.Members) > 0 {
			return fmt.Errorf("%s is %s: name a member, as in scrimp %s %s", g.ID, kindOf(g), use, members.Members[0].ID)
		}
		return fmt.Errorf("%s is %s, and no member of it has begun: scrimp status %s says why", g.ID, kindOf(g), g.ID)
	})
}

// failed reports whether an ended group missed its purpose.
func failed(g api.Group) bool {
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

// runGroup submits a job as an array or a study.
func (a *app) runGroup(ctx context.Context, c *command.Client, s api.Submission, detach bool) error {
	g, err := c.SubmitGroup(ctx, s)
	switch {
	case err != nil:
		return err
	case detach:
		a.Waiting(ctx, c)
		return a.printGroup(g)
	}
	return a.followGroup(ctx, c, g.ID)
}

// printGroup shows a group.
func (a *app) printGroup(g api.Group) error {
	if a.JSON {
		return a.Print(g)
	}
	a.Printf("%s", group.Group(g, a.Place()))
	return nil
}

// endGroup ends a group. For one that is over already while another of its name is open, it returns an error, because
// the user means the other.
func (a *app) endGroup(ctx context.Context, c *command.Client, id string, save bool) error {
	g, err := c.Group(ctx, id)
	if err == nil && g.State == "over" {
		if err := overAlready(ctx, c, g); err != nil {
			return err
		}
		a.Notef("%s is over already.\n", g.ID)
		return a.printGroup(g)
	}
	if err == nil {
		g, err = c.EndGroup(ctx, id, save)
	}
	if err != nil {
		return err
	}
	return a.printGroup(g)
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

// reviewGroup approves or rejects a group.
func (a *app) reviewGroup(ctx context.Context, c *command.Client, id, what, reason string) error {
	var g api.Group
	err := c.Do(ctx, http.MethodPost, "/v1/groups/"+url.PathEscape(id)+"/"+what, api.Review{Reason: reason}, &g)
	if err != nil {
		return err
	}
	return a.printGroup(g)
}

// groupReceipt shows what a group has cost.
func (a *app) groupReceipt(ctx context.Context, c *command.Client, id string) error {
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
	return nil
}

// followGroup shows the progress of a group until it is closed, and then its receipt.
func (a *app) followGroup(ctx context.Context, c *command.Client, id string) error {
	shown, stages := "", map[string]string{}
	for failed := 0; ; {
		g, err := c.Group(ctx, id)
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
					a.stageNews(g, stages)
				default:
					a.Notef("%s\n", group.Progress(g, a.Line()))
				}
			}
			if err != nil || g.Closed {
				return a.groupOver(ctx, c, g, err)
			}
		}
		_ = wait.For(ctx, time.Second)
	}
}

func (a *app) groupOver(ctx context.Context, c *command.Client, g api.Group, err error) error {
	switch {
	case err != nil || a.JSON:
	case g.Pipeline != nil:
		err = a.pipelineCost(ctx, c, g.ID)
	default:
		err = a.groupReceipt(ctx, c, g.ID)
	}
	if err == nil && failed(g) {
		return command.JobFailed
	}
	return err
}
