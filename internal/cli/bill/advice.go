package bill

import (
	"context"
	"fmt"
	"net/http"
	"os"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/content/billfile"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/advice"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/waste"
)

// readAdvice reads the recommendations of files, and what bills have for their resources.
func readAdvice(ctx context.Context, files, bills []string) ([]advice.Recommendation, error) {
	list := []advice.Recommendation{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--with: %w", err)
		}
		some, err := advice.Read(name, f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("--with: %w", err)
		}
		list = append(list, some...)
	}
	advice.Sort(list)
	if len(list) == 0 {
		return list, nil
	}
	return list, addBilled(ctx, list, bills)
}

// addBilled adds what the bills have for the resources, in the currency of each recommendation.
func addBilled(ctx context.Context, list []advice.Recommendation, bills []string) error {
	type key struct {
		resource string
		currency money.Currency
	}
	sums := map[key]*decimal.Decimal{}
	for _, r := range list {
		sums[key{r.Resource, r.Currency}] = nil
	}
	for _, file := range bills {
		if _, _, err := billfile.Rows(ctx, billfile.File{Name: file, Path: file}, nil, func(row bill.Row) error {
			for _, l := range row.Lines {
				k := key{advice.Last(l.Resource), l.Currency}
				sum, of := sums[k]
				if !of {
					continue
				}
				if sum == nil {
					sum = new(decimal.Decimal)
				}
				*sum = sum.Add(l.Billed)
				sums[k] = sum
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for i := range list {
		if sum := sums[key{list[i].Resource, list[i].Currency}]; sum != nil {
			amount, ok := sum.Amount()
			if !ok {
				return fmt.Errorf("the bill's sum for %.60s, %.40s, is too precise or too large", list[i].Resource, sum)
			}
			list[i].Billed = &amount
		}
	}
	return nil
}

// known adds what scrimp knows of the resources: its own machines are not for others to stop, and a finding about the
// same resource has its own evidence.
func known(ctx context.Context, c *command.Client, list []advice.Recommendation, v api.Waste) error {
	if len(list) == 0 {
		return nil
	}
	var machines []api.Machine
	if err := c.Do(ctx, http.MethodGet, "/v1/machines", nil, &machines); err != nil {
		return err
	}
	says := map[string]string{}
	for _, m := range machines {
		if says[m.Instance] = "scrimp's machine, without a job now: scrimp terminates it"; m.Job != "" {
			says[m.Instance] = "scrimp's machine, of job " + m.Job + ": change resources in its job file"
		}
	}
	found := map[string]string{}
	for _, f := range v.Findings {
		found[f.About] = f.ID
	}
	for i := range list {
		r := &list[i]
		if r.Resource == "" {
			continue
		}
		if r.Scrimp = says[r.Resource]; r.Scrimp != "" { // a job would lose its work
			r.Action, r.Check, r.Command = waste.Keep, "", "scrimp machines"
		}
		if id := found[r.Resource]; id != "" {
			r.Command = "scrimp waste apply " + id
			r.Scrimp = "scrimp finds it too: " + id
		}
	}
	return nil
}
