package estimate

import (
	"context"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
)

// past shows what runs have measured, or the errors of their estimates.
func (a *app) past(ctx context.Context, f estimateFlags) error {
	runs, err := pastruns.Ran(ctx, a.App, "", true)
	if err != nil {
		return err
	}
	chips := hardware.Catalogued()
	if f.measured {
		return command.ShowEach(a.App, runs, sizing.MeasuredRuns(runs, chips, f.most, a.Place()))
	}
	rows, err := pastruns.Tables(a.App, f.calibrate)
	if err != nil {
		return err
	}
	v := sizing.History{Pairs: runhistory.Compare(runs, rows, chips)}
	v.Missed = runhistory.Missing(v.Pairs)
	if len(rows) > 0 {
		v.LeftOut = estimate.New(chips, nil, append(rows, runhistory.Rows(runs, chips)...)).Accuracy()
	}
	if !a.JSON {
		a.Printf("%s", v.Text(f.most, a.Place()))
		return nil
	}
	if err := command.PrintEach(a, v.LeftOut); err != nil {
		return err
	}
	if err := command.PrintEach(a, v.Missed); err != nil {
		return err
	}
	return command.PrintEach(a, v.Pairs)
}
