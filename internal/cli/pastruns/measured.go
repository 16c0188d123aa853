// Package pastruns reads the measurements of earlier runs for estimates and plans.
package pastruns

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
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/launcher"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/quiet"
	"scrimp/internal/server"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/view/convert"
)

// mostMeasured bounds the number of runs that an estimate learns from.
const mostMeasured = 1000

// Runs returns the measurements of earlier runs of a job name, newest first; an empty name selects all jobs. Their
// expected costs require reading the whole log.
func Runs(ctx context.Context, c *command.Client, name string, expected bool) ([]runhistory.Run, error) {
	var list []api.Run
	q := url.Values{"limit": {fmt.Sprint(mostMeasured)}}
	if name != "" {
		q = url.Values{"name": {name}, "limit": {"20"}}
	}
	if expected {
		q.Set("expected", "1")
	}
	err := c.Do(ctx, http.MethodGet, "/v1/measured?"+q.Encode(), nil, &list)
	return convert.To[[]runhistory.Run](list), err
}

// Ran is Runs with the server of the data folder. It starts no server in a folder without earlier runs.
func Ran(ctx context.Context, a *command.App, name string, expected bool) ([]runhistory.Run, error) {
	c, err := a.Open(ctx)
	if errors.Is(err, command.ErrNoServer) {
		if _, err := os.Stat(filepath.Join(a.Data, server.TokenName)); errors.Is(err, os.ErrNotExist) {
			return nil, nil // nothing has ever run here
		}
		if _, err := os.Stat(filepath.Join(a.Data, server.ElsewhereName)); err == nil {
			return nil, errors.New("the log of this folder lies in PostgreSQL, and no server answers")
		}
		c, err = a.Ensure(ctx, "")
	}
	if err != nil {
		return nil, err
	}
	return Runs(ctx, c, name, expected)
}

// Fill sets the job's work from its measured runs if its file does not state it, and returns the source. It notes
// differences between the file and the runs.
func Fill(a *command.App, j spec.Job, runs []runhistory.Run) (filled spec.Job, from string) {
	j = runhistory.WithParallel(runs, j)
	k, ok := runhistory.Next(runs, j)
	if !ok {
		return j, ""
	}
	said := time.Duration(j.Work.Time)
	if said == 0 {
		return k.Fill(j), k.Source()
	}
	if math.Abs(said.Seconds()/k.Work.Seconds()-1) > 3*k.Spread {
		a.Notef("note: `work.time` says %s, and it is %s %s: leave it out, and they count\n", draw.Span(said),
			draw.Span(k.Work), k.Source())
	}
	return j, ""
}

// From is Fill with the server's runs. It notes if they are unavailable.
func From(ctx context.Context, a *command.App, c *command.Client, j spec.Job) (filled spec.Job, from string) {
	runs, err := Runs(ctx, c, j.Name, false)
	if err != nil {
		a.Notef("note: earlier runs are left out: %v\n", err)
	}
	return Fill(a, j, runs)
}

// Given marks the job if its folder contains a checkpoint: the job continues from it and measures only the rest.
func Given(j spec.Job, folder string) spec.Job {
	dir := j.Checkpoint.Dir
	if filepath.IsAbs(dir) { // on this machine; other machines' folders are unknown
		folder, dir = dir, "."
	}
	j.Checkpoint.Given = j.Checkpoint.Given || dir != "" && pack.Holds(folder, dir)
	return j
}

// mostModel bounds the model files read at a submission, in bytes.
const mostModel = 256 << 20

// Divided adds the job's parallelism over accelerators, as stated by its command and the files that the command names.
// A conflict with the job file is an error.
func Divided(j spec.Job, folder string) (spec.Job, error) {
	s := j.Launcher()
	if len(s.Files) == 0 {
		return dividedBy(j, s)
	}
	root, err := os.OpenRoot(folder) // restricts reading to the work folder
	if err == nil {
		defer func() { _ = root.Close() }()
		for i := 0; i < len(s.Files) && i < mostFiles; i++ {
			name := s.Files[i]
			info, err := root.Stat(name)
			if err != nil || !info.Mode().IsRegular() || info.Size() > mostFile {
				continue // it is part of the machine, or the setup writes it
			}
			text, err := quiet.ReadFileIn(root, name)
			if err != nil {
				return j, fmt.Errorf("read what the command names: %w", err)
			}
			next, err := s.File(name, text)
			if err != nil {
				return j, err
			}
			if next != "" {
				s.Files = append(s.Files, next)
			}
		}
	}
	return dividedBy(j, s)
}

// dividedBy adds the parallelism that a command and its files state.
func dividedBy(j spec.Job, s launcher.Settings) (spec.Job, error) {
	divided, bad := j.Divided(s)
	if len(bad) > 0 {
		return j, bad
	}
	return divided, nil
}

// Bounds of the launcher files: their number, and their size in bytes.
const (
	mostFiles = 4
	mostFile  = 1 << 20
)

// Modelled adds what the job's folder states about its model: the shape, and the parallelism over accelerators. They
// select the machines. A model without a statement is an error, since any machine would match it.
func Modelled(j spec.Job, folder string) (spec.Job, error) {
	divided, err := Divided(j, folder)
	if err != nil {
		return j, err
	}
	if !j.Model.Named() {
		return Shaped(j, folder), nil
	}
	j = Shaped(divided, folder) // its measurements teach estimates of runs with the same parallelism
	if _, known := runhistory.Shape(j.Name, j.Model); !known {
		m, err := Model(j, folder)
		if err != nil {
			return j, fmt.Errorf("model.config: %w", err)
		}
		if line, ok := modelfile.Line(m); ok { // of a file too large for Shaped
			j.Model.Shape = line
		}
	}
	if err := runhistory.Sound(j.Model); err != nil {
		return j, fmt.Errorf("model: %w", err)
	}
	return j, nil
}

// Model returns the model of a job: from a file of its folder, by published name, from a line, or from numbers.
func Model(j spec.Job, folder string) (shape.Model, error) {
	m, known := runhistory.Shape(j.Name, j.Model)
	name := j.Model.Config
	if name == "" {
		return m, nil
	}
	file := filepath.Join(folder, name)
	_, err := os.Stat(file)
	switch {
	case err == nil:
		name = file
	case known:
		return m, nil
	}
	m, err = ModelOf(name)
	m.Name = j.Name // the name of its measured runs
	return m, err
}

// Shaped adds the shape of the job's model as a line if its file names only a model file: the log keeps no files, and
// later estimates learn from the shape.
func Shaped(j spec.Job, folder string) spec.Job {
	file := filepath.Join(folder, j.Model.Config)
	if j.Model.Config == "" || j.Model.Shape != "" {
		return j
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() > mostModel {
		return j
	}
	if m, err := ModelOf(file); err == nil {
		if line, ok := modelfile.Line(m); ok {
			j.Model.Shape = line
		}
	}
	return j
}
