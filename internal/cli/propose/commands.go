// Package propose holds the commands that propose jobs, rank proposals, decide about them and record what they gave.
package propose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	list := a.listCmd()
	list.AddCommand(a.showCmd(), a.approveCmd(), a.rejectCmd(), a.outcomeCmd())
	return []*cobra.Command{a.proposeCmd(), list}
}

func (a *app) proposeCmd() *cobra.Command {
	var f jobfile.Flags
	var why, value string
	cmd := &cobra.Command{Use: "propose job.yaml --why TEXT --value VALUE | propose ... -- COMMAND [ARG ...]",
		Short: "Propose a job that runs once somebody approves it", Args: command.TakesJob, GroupID: command.GroupShare,
		ValidArgsFunction: command.CompleteJobFile,
		Long: "Submits a job that waits until somebody approves it (scrimp proposals approve), whatever the budgets say. " +
			"scrimp simulates its cost, and keeps the cost with the reason and the expected value in the audit trail. The " +
			"job takes nothing from a budget while it waits, its deadline runs on, and after 30 days it is cancelled.\n\n" +
			"A value is an amount in the job's currency, such as '$5000', or words, such as \"a figure of the paper\". " +
			"scrimp proposals ranks amounts only." + command.PlainExit,
		Example: "  scrimp propose job.yaml --why \"twice the data\" --value '$5000'\n" +
			"  scrimp propose job.yaml --why \"a reviewer asks for it\" --value \"a figure of the paper\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := proposing(why, value)
			if err != nil {
				return err
			}
			return a.propose(cmd.Context(), args, cmd.ArgsLenAtDash(), f, p)
		}}
	f.Add(cmd)
	f.AddTerms(cmd)
	cmd.Flags().StringVar(&why, "why", "", "`text` that says why the job is worth its cost (default: none, and it must "+
		"be given)")
	cmd.Flags().StringVar(&value, "value", "", "expected `value`: dollars or words (default: none, and it must be given)")
	return cmd
}

// proposing returns the proposal of the flags, or which of them is missing.
func proposing(why, value string) (*api.Proposing, error) {
	p := &api.Proposing{Why: why}
	if strings.TrimSpace(why) == "" {
		return nil, errors.New("--why is missing: say why the job is worth its cost")
	}
	amount, words, err := valueOf(value)
	switch {
	case err != nil:
		return nil, err
	case amount == nil && words == "":
		return nil, errors.New("--value is missing: write dollars, such as '$5000', or words")
	}
	p.Value, p.ValueText = amount, words
	return p, nil
}

// valueOf returns the value of a flag as an amount or as words. It refuses what looks like an amount and is none.
func valueOf(text string) (amount *money.Amount, words string, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, "", nil
	}
	got, err := spec.ParseAmount(text)
	switch {
	case err == nil && got.Sign() >= 0:
		return &got, "", nil
	case err == nil || strings.ContainsAny(text[:1], "$-0123456789"):
		return nil, "", fmt.Errorf("--value %.40q is not an amount from 0: write one such as '$5000', without commas, or "+
			"words that begin with a letter", text)
	}
	return nil, text, nil
}

func (a *app) propose(ctx context.Context, args []string, dash int, f jobfile.Flags, p *api.Proposing) error {
	c, _, j, folder, err := jobfile.Connect(ctx, a.App, args, dash, f)
	if err != nil {
		return err
	}
	job, err := submit.Job(ctx, a.App, c, api.Submission{Proposal: p}, j, folder)
	if err != nil {
		return c.Said(ctx, err)
	}
	return a.show(ctx, c, job.ID)
}

func (a *app) listCmd() *cobra.Command {
	var team, budget string
	cmd := &cobra.Command{Use: "proposals", Short: "Rank proposed jobs by value per dollar", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Lists proposed jobs. Those that wait for approval are ranked by expected value per dollar of planned cost " +
			"(the median of its simulation); ties go to the lower cost, then to the name. A proposal whose value is in words, " +
			"whose cost is unknown, or that is in another currency than USD, has no rank.\n\nWith --budget, FITS marks the " +
			"proposals that are worth most together within that amount. Of sets of equal value it is the cheapest. scrimp " +
			"tries 20000 sets; if there are more it says so, and the set is at least as good as what fits in the order of the " +
			"rank. The list has the newest 1000 proposals of the teams that you may see." + command.PlainExit,
		Example: "  scrimp proposals\n  scrimp proposals --team vision --budget '$500' --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := c.Proposals(ctx, team, budget)
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.Show(v, list(v, a.Place()))
		})}
	cmd.Flags().StringVar(&team, "team", "", "proposals of this `team` (default: of all that you may see)")
	cmd.Flags().StringVar(&budget, "budget", "", "say which proposals fit into this `amount` (default: no amount)")
	return cmd
}

func (a *app) showCmd() *cobra.Command {
	return &cobra.Command{Use: "show ID", Short: "Compare what a proposal expected with what it cost and gave",
		Args: command.Takes("ID"), ValidArgsFunction: a.CompleteJob(proposed),
		Long: "Shows a proposal: why, its expected value and planned cost, who approved it, what it has cost, and what it " +
			"gave." + command.PlainExit,
		Example: "  scrimp proposals show train-lm-2",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.show(ctx, c, args[0])
		})}
}

// proposed reports whether the job waits for approval or was approved as a proposal.
func proposed(j api.Job) bool { return j.Approval != nil && j.Approval.Proposal }

func (a *app) approveCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "approve ID", Short: "Let a proposed job run", Args: command.Takes("ID"),
		ValidArgsFunction: a.CompleteJob(proposed),
		Long: "Approves a proposed job, as scrimp approve does. It takes an operator of the job's team other than its " +
			"proposer, or an admin. The job then waits in the queue as a job of its proposer, and the budgets are weighed." +
			command.PlainExit,
		Example: "  scrimp proposals approve train-lm-2",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.review(ctx, c, args[0], "approve", reason)
		})}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the audit trail (default: none)")
	return cmd
}

func (a *app) rejectCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "reject ID --reason TEXT", Short: "End a proposed job, and say why",
		Args: command.Takes("ID"), ValidArgsFunction: a.CompleteJob(proposed),
		Long: "Ends a proposed job, as scrimp reject does. It takes an operator of the job's team." +
			command.PlainExit,
		Example: "  scrimp proposals reject train-lm-2 --reason \"try a tenth of the data first\"",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return errors.New("a rejection says why: give --reason")
			}
			return a.review(ctx, c, args[0], "reject", reason)
		})}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for its proposer (default: none, and it must be given)")
	return cmd
}

// review approves or rejects a proposal. It refuses jobs that are no proposals: scrimp approve lists those.
func (a *app) review(ctx context.Context, c *command.Client, id, what, reason string) error {
	if _, err := c.Proposal(ctx, id); err != nil {
		return c.Said(ctx, err)
	}
	var j api.Job
	if err := c.Do(ctx, http.MethodPost, command.OfJob(id, "/")+what, api.Review{Reason: reason}, &j); err != nil {
		return c.Said(ctx, err)
	}
	return a.show(ctx, c, id)
}

func (a *app) outcomeCmd() *cobra.Command {
	var text, value string
	cmd := &cobra.Command{Use: "outcome ID", Short: "Record what a proposed job has given", Args: command.Takes("ID"),
		ValidArgsFunction: a.CompleteJob(proposed),
		Long: "Records what a proposed job has given, in words, dollars or both. A later outcome replaces an earlier one; " +
			"the audit trail keeps both. It takes the proposer, or an operator of the team." + command.PlainExit,
		Example: "  scrimp proposals outcome train-lm-2 --text \"3 points better\" --value '$4000'",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			amount, words, err := valueOf(value)
			switch {
			case err != nil:
				return err
			case words != "":
				return fmt.Errorf("--value %.40q is not an amount: write one such as '$5000', and words with --text", words)
			case amount == nil && strings.TrimSpace(text) == "":
				return errors.New("--text is missing: say what the job gave, with --text, --value or both")
			}
			v, err := c.SetOutcome(ctx, args[0], api.ProposalOutcome{Text: text, Value: amount})
			if err != nil {
				return c.Said(ctx, err)
			}
			return a.print(v)
		})}
	cmd.Flags().StringVar(&text, "text", "", "what it gave, as `text` (default: none)")
	cmd.Flags().StringVar(&value, "value", "", "what that is worth, an `amount` (default: unknown)")
	return cmd
}

func (a *app) show(ctx context.Context, c *command.Client, id string) error {
	v, err := c.Proposal(ctx, id)
	if err != nil {
		return c.Said(ctx, err)
	}
	return a.print(v)
}

func (a *app) print(v api.Proposal) error {
	return a.Show(v, one(v, a.Place()))
}
