// Package learn reads what earlier runs have measured, which estimates and plans learn from.
package learn

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
	"scrimp/internal/decide/measured"
	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/server"
	"scrimp/internal/server/workdir"
	"scrimp/internal/view/convert"
)

// mostMeasured is how many runs an estimate learns from.
const mostMeasured = 1000

// Runs returns what earlier runs of a job's name have measured, newest first;
// of all jobs where it is "". What they were expected to cost takes the whole log.
func Runs(ctx context.Context, c *command.Client, name string, expected bool) ([]measured.Run, error) {
	var list []api.Run
	q := url.Values{"limit": {fmt.Sprint(mostMeasured)}}
	if name != "" {
		q = url.Values{"name": {name}, "limit": {"20"}}
	}
	if expected {
		q.Set("expected", "1")
	}
	err := c.Do(ctx, http.MethodGet, "/v1/measured?"+q.Encode(), nil, &list)
	return convert.To[[]measured.Run](list), err
}

// Ran is Runs of whatever server the data folder has. A folder in which nothing
// has ever run starts none.
func Ran(ctx context.Context, a *command.App, name string, expected bool) ([]measured.Run, error) {
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

// Fill fills in how much work a job is from its measured runs, where its file
// does not say, and from what that is known. It tells where the file and they disagree.
func Fill(a *command.App, j spec.Job, runs []measured.Run) (filled spec.Job, from string) {
	k, ok := measured.Next(runs, j)
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

// From is Fill with the runs that a server knows; without them it says why.
func From(ctx context.Context, a *command.App, c *command.Client, j spec.Job) (filled spec.Job, from string) {
	runs, err := Runs(ctx, c, j.Name, false)
	if err != nil {
		a.Notef("note: earlier runs are left out: %v\n", err)
	}
	return Fill(a, j, runs)
}

// Given is the job with a word that its folder brings a checkpoint, where it does: it begins
// from that, and measures only what comes after it.
func Given(j spec.Job, folder string) spec.Job {
	dir := j.Checkpoint.Dir
	if filepath.IsAbs(dir) { // on this machine; what another one has there is not known
		folder, dir = dir, "."
	}
	j.Checkpoint.Given = j.Checkpoint.Given || dir != "" && workdir.Holds(folder, dir)
	return j
}

// mostModel is the largest file that is looked into at a submission, in bytes.
const mostModel = 256 << 20

// Divided is the job with what its command, and the files that it names, say of how the run is
// divided over accelerators. Where they say otherwise than the job file does it is an error.
func Divided(j spec.Job, folder string) (spec.Job, error) {
	s := j.Launcher()
	root, err := os.OpenRoot(folder) // nothing outside the work folder is read
	if err == nil {
		defer func() { _ = root.Close() }()
		for i := 0; i < len(s.Files) && i < mostFiles; i++ {
			name := s.Files[i]
			info, err := root.Stat(name)
			if err != nil || !info.Mode().IsRegular() || info.Size() > mostFile {
				continue // it comes with the machine, or the set-up writes it
			}
			text, err := root.ReadFile(name)
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
	divided, bad := j.Divided(s)
	if len(bad) > 0 {
		return j, bad
	}
	return divided, nil
}

// How many files of a launcher are read, and how large they may be, in bytes.
const (
	mostFiles = 4
	mostFile  = 1 << 20
)

// Modelled is the job with what its folder says of its model: its shape, and how the run is divided over
// accelerators. So much is sent with it, and machines are chosen by it; a model that nothing says is an error,
// since any machine would do for it.
func Modelled(j spec.Job, folder string) (spec.Job, error) {
	divided, err := Divided(j, folder)
	if err != nil {
		return j, err
	}
	if !j.Model.Named() {
		return Shaped(j, folder), nil
	}
	j = Shaped(divided, folder) // what is measured of it teaches estimates of runs that are divided so
	if _, known := measured.Shape(j.Name, j.Model); !known {
		m, err := Model(j, folder)
		if err != nil {
			return j, fmt.Errorf("model.config: %w", err)
		}
		if line, ok := modelfile.Line(m); ok { // of a file that is too large for Shaped
			j.Model.Shape = line
		}
	}
	if err := measured.Sound(j.Model); err != nil {
		return j, fmt.Errorf("model: %w", err)
	}
	return j, nil
}

// Model is the model that a job names: in a file of its folder, by published name, in a line or in numbers.
func Model(j spec.Job, folder string) (shape.Model, error) {
	m, known := measured.Shape(j.Name, j.Model)
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
	m.Name = j.Name // as its measured runs are called
	return m, err
}

// Shaped is the job with the shape of its model in a line, where its file says only
// in which file that stands: the log keeps no files, and later estimates learn from it.
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
