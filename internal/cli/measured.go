package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	api "scrimp/client"
	"scrimp/internal/api/convert"
	"scrimp/internal/cli/show"
	"scrimp/internal/draw"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/measured"
	"scrimp/internal/server"
	"scrimp/internal/spec"
)

// mostMeasured is how many runs an estimate learns from.
const mostMeasured = 1000

// runsOf returns what earlier runs of a job's name have measured, newest first;
// of all jobs where it is "". What they were expected to cost takes the whole log.
func runsOf(ctx context.Context, c *client, name string, expected bool) ([]measured.Run, error) {
	var list []api.Run
	q := url.Values{"limit": {fmt.Sprint(mostMeasured)}}
	if name != "" {
		q = url.Values{"name": {name}, "limit": {"20"}}
	}
	if expected {
		q.Set("expected", "1")
	}
	err := c.do(ctx, http.MethodGet, "/v1/measured?"+q.Encode(), nil, &list)
	return convert.To[[]measured.Run](list), err
}

// ran is runsOf of whatever server the data folder has. A folder in which nothing
// has ever run starts none.
func (a *app) ran(ctx context.Context, name string, expected bool) ([]measured.Run, error) {
	c, err := a.open(ctx)
	if errors.Is(err, errNoServer) {
		if _, err := os.Stat(filepath.Join(a.data, server.TokenName)); errors.Is(err, os.ErrNotExist) {
			return nil, nil // nothing has ever run here
		}
		if _, err := os.Stat(filepath.Join(a.data, server.ElsewhereName)); err == nil {
			return nil, errors.New("the log of this folder lies in PostgreSQL, and no server answers")
		}
		c, err = a.ensure(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	return runsOf(ctx, c, name, expected)
}

// learn fills in how much work a job is from its measured runs, where its file
// does not say, and from what that is known. It tells where the file and they disagree.
func (a *app) learn(j spec.Job, runs []measured.Run) (filled spec.Job, from string) {
	k, ok := measured.Next(runs, j)
	if !ok {
		return j, ""
	}
	said := time.Duration(j.Work.Time)
	if said == 0 {
		return k.Fill(j), k.Source()
	}
	if math.Abs(said.Seconds()/k.Work.Seconds()-1) > 3*k.Spread {
		a.notef("note: `work.time` says %s, and it is %s %s: leave it out, and they count\n", draw.Span(said),
			draw.Span(k.Work), k.Source())
	}
	return j, ""
}

// learnFrom is learn with the runs that a server knows; without them it says why.
func (a *app) learnFrom(ctx context.Context, c *client, j spec.Job) (filled spec.Job, from string) {
	runs, err := runsOf(ctx, c, j.Name, false)
	if err != nil {
		a.notef("note: earlier runs are left out: %v\n", err)
	}
	return a.learn(j, runs)
}

// mostModel is the largest file that is looked into at a submission, in bytes.
const mostModel = 256 << 20

// shaped is the job with the shape of its model in a line, where its file says only
// in which file that stands: the log keeps no files, and later estimates learn from it.
func shaped(j spec.Job, folder string) spec.Job {
	file := filepath.Join(folder, j.Model.Config)
	if j.Model.Config == "" || j.Model.Shape != "" {
		return j
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() > mostModel {
		return j
	}
	if m, err := modelOf(file); err == nil {
		if line, ok := modelfile.Line(m); ok {
			j.Model.Shape = line
		}
	}
	return j
}

// past shows what runs have measured, or how wrong was what had been expected of them.
func (a *app) past(ctx context.Context, f estimateFlags) error {
	runs, err := a.ran(ctx, "", true)
	if err != nil {
		return err
	}
	chips := estimate.Catalogued()
	if f.measured {
		if !a.json {
			a.printf("%s", show.MeasuredRuns(runs, chips, f.most, a.place()))
			return nil
		}
		for _, r := range runs {
			if err := a.print(r); err != nil {
				return err
			}
		}
		return nil
	}
	rows, err := a.tables(f)
	if err != nil {
		return err
	}
	v := show.History{Pairs: measured.Compare(runs, rows, chips)}
	v.Missed = measured.Missing(v.Pairs)
	if len(rows) > 0 {
		v.LeftOut = estimate.New(chips, nil, append(rows, measured.Rows(runs, chips)...)).Accuracy()
	}
	if !a.json {
		a.printf("%s", v.Text(f.most, a.place()))
		return nil
	}
	for _, e := range v.LeftOut {
		if err := a.print(e); err != nil {
			return err
		}
	}
	for _, m := range v.Missed {
		if err := a.print(m); err != nil {
			return err
		}
	}
	for _, p := range v.Pairs {
		if err := a.print(p); err != nil {
			return err
		}
	}
	return nil
}
