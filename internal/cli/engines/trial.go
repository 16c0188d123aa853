package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// trialDollars is the default budget of a trial.
const trialDollars = "0.25"

// trialJob does nothing, on the cheapest uninterruptible machine of an engine.
const trialJob = `name: doctor
command: "true"
any_of: [%s]
resources: {capacity: [on-demand, reserved]}
budget: {dollars: %s}
`

// launched runs a trial job on an engine and prints the result.
func (a *app) launched(ctx context.Context, name, dollars string, patience time.Duration) error {
	found, err := a.try(ctx, name, dollars, patience)
	if err != nil {
		return err
	}
	failed, err := a.printFindings([]show.Check{found})
	if err == nil && failed {
		err = command.Failed
	}
	return err
}

// try runs a job that does nothing on an engine and returns the finding. It is an ordinary job: its cost is in the
// ledger, and it ends if this command is killed. try gives the job up if it has no machine within patience.
func (a *app) try(ctx context.Context, name, dollars string, patience time.Duration) (show.Check, error) {
	found := show.Check{Name: "trial"}
	if patience <= 0 {
		return found, fmt.Errorf("--patience is %v: write for how long the trial may have no machine, such as 5m", patience)
	}
	if most, err := money.Parse(dollars); err != nil || most.Sign() <= 0 {
		return found, fmt.Errorf("--dollars is %q: write the most that the trial may cost, such as %s", dollars, trialDollars)
	}
	c, err := a.Ensure(ctx, "")
	if err != nil {
		return found, err
	}
	text, err := json.Marshal(fmt.Sprintf(trialJob, name, dollars))
	if err != nil {
		return found, err
	}
	j, err := c.Submit(ctx, api.Submission{Key: jobfile.Key(), Spec: text})
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		found.Text = "a job for it is refused: " + problem.Error()
		return found, nil
	}
	if err != nil {
		return found, err
	}
	began := a.Now()
	a.Notef("%s runs nothing on %s, for %s at most; ctrl-C gives it up.\n", j.ID, name, "$"+dollars)
	j, offer := a.watchTrial(ctx, c, j, patience)
	if !j.Closed {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, err := c.End(end, j.ID, false); err != nil {
			return found, fmt.Errorf("the trial goes on: scrimp cancel %s ends it: %w", j.ID, err)
		}
		found.Text = fmt.Sprintf("given up; scrimp status %s says how far it came", j.ID)
		if ctx.Err() == nil {
			found.Text = fmt.Sprintf("given up, as it had no machine for %s: %s (scrimp explain %s)", draw.Span(patience),
				cmp.Or(j.Detail, strings.ReplaceAll(j.Why, "_", " ")), j.ID)
		}
		return found, nil
	}
	cost := money.Format(j.Spent, j.Currency, 4)
	if j.State != string(state.Succeeded) {
		found.Text = fmt.Sprintf("the job is %s after %s, for %s: %s (scrimp explain %s)", j.State,
			draw.Span(a.Now().Sub(began).Round(time.Second)), cost, j.Detail, j.ID)
		return found, nil
	}
	found.OK, found.Text = true, fmt.Sprintf("a job ran on %s and was over %s after its submission, for %s (scrimp "+
		"receipt %s)", offer, draw.Span(a.Now().Sub(began).Round(time.Second)), cost, j.ID)
	return found, nil
}

// watchTrial shows how a trial gets on until it is over, or has had no machine for patience. It returns the trial's
// newest state and the offer that it last ran on.
func (a *app) watchTrial(ctx context.Context, c *command.Client, j api.Job, patience time.Duration) (_ api.Job,
	offer string) {
	said, detail := "", ""
	watching, tired := context.WithCancel(ctx)
	defer tired()
	alone := time.AfterFunc(patience, tired) // without a machine
	for newer, err := range c.Watch(watching, j.ID) {
		if err != nil {
			break
		}
		j = newer
		if j.Machine != "" && alone != nil {
			alone.Stop()
			alone = nil
		}
		if j.Machine == "" && alone == nil {
			alone = time.AfterFunc(patience, tired)
		}
		if j.Offer != "" {
			offer = j.Offer
		}
		if j.Detail != "" && j.Detail != detail {
			detail = j.Detail
			a.Notef("%s", draw.Wrap("  ", detail, a.Place().Width))
		}
		if line := show.Progress(j, a.Line()); line != said {
			said = line
			a.Notef("%s\n", line)
		}
	}
	return j, offer
}
