package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/evidence"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/rank"
	"scrimp/internal/job/check"
	"scrimp/internal/job/check/fact"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/server"
	"scrimp/internal/view/convert"
)

func (a *app) checkCmd() *cobra.Command {
	var f jobfile.Flags
	var facts []string
	var file string
	var force, all bool
	cmd := &cobra.Command{
		Use:   "check job.yaml",
		Short: "Check a job against checklists before it costs money",
		Long: "Checks a job against seven lists (planning, data, before, during and after training, before deployment, in " +
			"production). Each item gets a verdict, its evidence and its fix. " +
			"It reads the job file, the programs that its command names, earlier runs of the same name, and the catalogue. " +
			"What none of them answers is unknown, and never passes; state it with --fact.\n\n" +
			"Exit status: 0 nothing fails, 2 something does, 1 error.",
		Example: "  scrimp check job.yaml\n  scrimp check job.yaml --fact utilisation=82% --fact quantised=int8\n" +
			"  scrimp check job.yaml --facts facts.yaml --json\n\nWhat --fact takes:\n" +
			strings.TrimSuffix(show.Facts(show.Place{Width: command.HelpWidth}), "\n"),
		Args: command.TakesJob, GroupID: command.GroupRun, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := a.Now().UTC()
			j, folder, notes, err := jobfile.Load(spec.Read, args, cmd.ArgsLenAtDash(), f, now)
			if err != nil {
				return err
			}
			jobfile.Note(a.App, notes)
			c := check.Case{Job: j, Now: now, Force: force, Texts: evidence.Programs(j, folder)}
			away, err := a.Far(a.Data)
			if err != nil {
				return err
			}
			program := cmp.Or(j.Command, strings.Join(j.Args[:min(1, len(j.Args))], ""))
			c.Found = jobfile.Found(cmd.Context(), program, away != nil)
			if c.Facts, err = readFacts(file, facts); err != nil {
				return err
			}
			cat, _, err := offers.LoadCatalog(a.App)
			if err != nil {
				return err
			}
			c.Offers, c.Charges = cat.Listings, cat.Own
			if err := a.history(cmd.Context(), &c); err != nil {
				return err
			}
			if j.Model.Named() {
				if err := a.expect(cmd.Context(), &c, folder); err != nil {
					a.Notef("note: no estimate: %v\n", err)
				}
			}
			r := check.Check(c)
			if a.JSON {
				err = a.Print(r)
			} else {
				a.Printf("%s", show.Checklist(r, all, a.Place()))
			}
			if err == nil && !r.OK {
				return command.Infeasible
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&f.Env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().StringArrayVar(&facts, "fact", nil, "state `NAME=VALUE`, which nothing else says (default none; may "+
		"be repeated)")
	cmd.Flags().StringVar(&file, "facts", "", "YAML `file` of such names and values; --fact goes over it (default none)")
	cmd.Flags().BoolVar(&all, "all", false, "list every item (default: not those of deployment and production where "+
		"nothing is known of them)")
	cmd.Flags().BoolVar(&force, "force", false, "let a long run go on spot without proven checkpoints (default: it fails)")
	return cmd
}

// expect adds the model's estimate for the machine that a plan would take.
func (a *app) expect(ctx context.Context, c *check.Case, folder string) error {
	q, _, err := a.question(ctx, c.Job, c.WorkFrom, folder, catalog.Catalog{Listings: c.Offers}, c.Now)
	if err != nil {
		return err
	}
	answer := rank.Rank(q)
	var p rank.Plan
	switch {
	case answer.Feasible:
		p = answer.Plans[0]
	case len(answer.Rejected) > 0:
		p = answer.Rejected[0].Plan
	}
	if p.Offer == nil {
		return errors.New("no matching offers in the catalogue")
	}
	e := check.Estimate{CostLow: p.Cost.Low, Cost: p.Cost.Value, CostHigh: p.Cost.High,
		Time:   time.Duration(p.Hours.Value * float64(time.Hour)),
		Source: fmt.Sprintf("%s, on %s", strings.TrimRight(p.Source, ". "), p.ID)}
	if x, ok := q.Estimate(rank.Shape{Accelerator: p.Offer.Offer.Accelerator, Each: p.Offer.Offer.Accelerators,
		Machines: p.Machines}, 0); ok {
		e.PeakMemory = x.Memory
	}
	c.Estimate = &e
	return nil
}

// mostFacts bounds a file of facts, in bytes.
const mostFacts = 64 << 10

// readFacts reads the user's facts from a file and from flags, which replace those of the file.
func readFacts(file string, flags []string) (map[string]string, error) {
	facts := map[string]string{}
	if file != "" {
		if err := readFactFile(facts, file); err != nil {
			return nil, fmt.Errorf("--facts: %w", err)
		}
	}
	given := map[string]bool{}
	for _, s := range flags {
		name, value, err := fact.Parse(s)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--fact %w", err)
		case given[name]:
			return nil, fmt.Errorf("--fact %s is given twice: give it once", name)
		}
		facts[name], given[name] = value, true
	}
	return facts, nil
}

// readFactFile adds the facts of a YAML file.
func readFactFile(facts map[string]string, file string) error {
	text, err := jobfile.ReadFile(file, mostFacts)
	if err != nil {
		return err
	}
	var values map[string]yaml.Node
	if err := yaml.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("%s: write one fact a line, such as quantised: int8: %w", file, err)
	}
	for name, v := range values {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s:%d: %s has several values: write one, such as %s: VALUE", file, v.Line, name, name)
		}
		name, value, err := fact.Parse(name + "=" + v.Value)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, v.Line, err)
		}
		facts[name] = value
	}
	return nil
}

// history adds the data folder's earlier runs of the same name, and the offers of its market.
func (a *app) history(ctx context.Context, c *check.Case) error {
	if _, err := os.Stat(filepath.Join(a.Data, server.TokenName)); errors.Is(err, os.ErrNotExist) {
		return nil // nothing has ever run here
	}
	cl, err := a.Ensure(ctx, "")
	if err != nil {
		return err
	}
	var m api.Market
	if err := cl.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		return err
	}
	for _, l := range m.Offers {
		c.Here = append(c.Here, catalog.Listing{Offer: convert.To[market.Offer](l.Offer),
			Quote: convert.To[market.Quote](l.Quote), RuleSource: m.Clock.Name})
	}
	c.Offers = append(c.Offers, c.Here...)
	c.Job, c.WorkFrom = pastruns.From(ctx, a.App, cl, c.Job)
	c.Runs, err = evidence.Runs(ctx, cl, c.Job.Name)
	return err
}
