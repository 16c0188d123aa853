package estimate

import (
	"context"

	"scrimp/internal/cli/learn"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/decide/measured"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
)

// past shows what runs have measured, or the errors of their estimates.
func (a *app) past(ctx context.Context, f estimateFlags) error {
	runs, err := learn.Ran(ctx, a.App, "", true)
	if err != nil {
		return err
	}
	chips := hardware.Catalogued()
	if f.measured {
		if !a.JSON {
			a.Printf("%s", sizing.MeasuredRuns(runs, chips, f.most, a.Place()))
			return nil
		}
		for _, r := range runs {
			if err := a.Print(r); err != nil {
				return err
			}
		}
		return nil
	}
	rows, err := learn.Tables(a.App, f.calibrate)
	if err != nil {
		return err
	}
	v := sizing.History{Pairs: measured.Compare(runs, rows, chips)}
	v.Missed = measured.Missing(v.Pairs)
	if len(rows) > 0 {
		v.LeftOut = estimate.New(chips, nil, append(rows, measured.Rows(runs, chips)...)).Accuracy()
	}
	if !a.JSON {
		a.Printf("%s", v.Text(f.most, a.Place()))
		return nil
	}
	for _, e := range v.LeftOut {
		if err := a.Print(e); err != nil {
			return err
		}
	}
	for _, m := range v.Missed {
		if err := a.Print(m); err != nil {
			return err
		}
	}
	for _, p := range v.Pairs {
		if err := a.Print(p); err != nil {
			return err
		}
	}
	return nil
}
