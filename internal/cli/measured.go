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

	"scrimp/internal/draw"
	"scrimp/internal/measured"
	"scrimp/internal/server"
	"scrimp/internal/spec"
)

// mostMeasured is how many runs an estimate learns from.
const mostMeasured = 1000

// runsOf returns what earlier runs of a job's name have measured, newest first;
// of all jobs where it is "".
func runsOf(ctx context.Context, c *client, name string) ([]measured.Run, error) {
	var list []measured.Run
	q := url.Values{"limit": {fmt.Sprint(mostMeasured)}}
	if name != "" {
		q = url.Values{"name": {name}, "limit": {"20"}}
	}
	err := c.do(ctx, http.MethodGet, "/v1/measured?"+q.Encode(), nil, &list)
	return list, err
}

// ran is runsOf of whatever server the data folder has. A folder in which nothing
// has ever run starts none.
func (a *app) ran(ctx context.Context, name string) ([]measured.Run, error) {
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
	return runsOf(ctx, c, name)
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
		a.notef("note: `work.time` says %s, and it is %s %s: leave it out, and they count\n", draw.Span(said), draw.Span(k.Work), k.Source())
	}
	return j, ""
}

// learnFrom is learn with the runs that a server knows; without them it says why.
func (a *app) learnFrom(ctx context.Context, c *client, j spec.Job) (filled spec.Job, from string) {
	runs, err := runsOf(ctx, c, j.Name)
	if err != nil {
		a.notef("note: earlier runs are left out: %v\n", err)
	}
	return a.learn(j, runs)
}
