// Package submit sends jobs to the server with what they need of this machine: the work folder, secrets and variables
// of the shell.
package submit

import (
	"context"
	"net/http"
	"os"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/workdir/pack"
)

// Job submits a job with a folder; an empty name stands for none.
func Job(ctx context.Context, a *command.App, c *command.Client, s api.Submission, j spec.Job, folder string) (
	job api.Job, err error) {
	if s, err = Request(ctx, a, c, s, j, folder); err != nil {
		return job, err
	}
	return c.Submit(ctx, s)
}

// Request builds the request for a job. For a remote server it uploads the folder. s holds the accepted warnings.
// The job includes the model found in its folder (pastruns.Modelled).
func Request(ctx context.Context, a *command.App, c *command.Client, s api.Submission, j spec.Job, folder string) (
	api.Submission, error) {
	var err error
	s.Key, s.Folder = jobfile.Key(), folder
	j = pastruns.Given(j, folder)
	if c.Far {
		if s.Folder = ""; folder != "" {
			if s.Work, err = c.SendFolder(ctx, folder); err != nil {
				return s, err
			}
		}
	}
	if list := pack.Secrets(folder); folder != "" && len(list) > 0 {
		a.Notef("note: not sent, because they are secrets by name or content: %s. Name values under secrets, or write !%s "+
			"into .scrimpignore to send it\n", strings.Join(list, ", "), list[0])
	}
	if s.Spec, err = j.Encode(); err != nil {
		return s, err
	}
	if s.Secrets, err = jobfile.Secrets(j.Secrets); err != nil {
		return s, err
	}
	if s.Shell, err = jobfile.Shell(j, c.Far); err != nil {
		return s, err
	}
	if c.Far && (os.Getenv("VIRTUAL_ENV") != "" || os.Getenv("CONDA_PREFIX") != "") {
		a.Notef("note: the server is elsewhere: nothing of this shell is passed on, its Python environment neither; name " +
			"what the program needs under setup\n")
	}
	return s, nil
}

// Resume resumes a job with the terms and variables in b, and with the secrets and variables of this shell.
func Resume(ctx context.Context, c *command.Client, job string, b api.Resume) (j api.Job, err error) {
	was, err := c.Job(ctx, job)
	if err != nil {
		return j, err
	}
	if was.Finished != nil {
		if err := ofShell(ctx, c, job, &b); err != nil {
			return j, err
		}
	}
	err = c.Do(ctx, http.MethodPost, command.OfJob(job, "/resume"), b, &j)
	return j, err
}

// ofShell adds the values of the secrets and shell variables that a job's file names.
func ofShell(ctx context.Context, c *command.Client, job string, b *api.Resume) error {
	j, err := c.Spec(ctx, job)
	if err == nil {
		j, err = j.WithEnv(b.Env)
	}
	if err != nil {
		return err
	}
	if b.Secrets, err = jobfile.Secrets(j.Secrets); err != nil {
		return err
	}
	b.Shell, err = jobfile.Shell(j, c.Far)
	return err
}
