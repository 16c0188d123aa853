package jobs

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// totals prints sums of jobs by a property.
func (a *app) totals(ctx context.Context, c *command.Client, by string, filter url.Values) error {
	a.Waiting(ctx, c)
	q := maps.Clone(filter)
	q.Set("by", by)
	var v api.JobTotals
	if err := c.Do(ctx, http.MethodGet, "/v1/totals?"+q.Encode(), nil, &v); err != nil {
		return err
	}
	if v.More > 0 {
		a.Notef("%s are left out.\n", draw.Count(v.More, "more group"))
	}
	if a.JSON {
		return command.PrintEach(a.App, v.Lines)
	}
	if len(v.Lines) == 0 {
		a.Printf("No job matches. scrimp jobs lists all.\n")
		return nil
	}
	a.Printf("%s", show.JobTotals(v, a.Place()))
	return nil
}
