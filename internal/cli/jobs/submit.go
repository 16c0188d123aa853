package jobs

import (
	"context"
	"errors"
	"os"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/learn"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/workdir/pack"
)

// submit submits the job.
func (a *app) submit(ctx context.Context, c *command.Client, s api.Submission, j spec.Job, folder string) (
	job api.Job, err error) {
	if s, err = a.submission(ctx, c, s, j, folder); err != nil {
		return job, err
	}
	return c.Submit(ctx, s)
}

// submission builds the request for the job. For a remote server it uploads the folder. s holds the accepted warnings.
// The job includes the model found in its folder (learn.Modelled).
func (a *app) submission(ctx context.Context, c *command.Client, s api.Submission, j spec.Job, folder string) (
	api.Submission, error) {
	var err error
	s.Key, s.Folder = jobfile.Key(), folder
	j = learn.Given(j, folder)
	if c.Far {
		if s.Folder = ""; folder != "" {
			if s.Work, err = c.SendFolder(ctx, folder); err != nil {
				return s, err
			}
		}
	}
	if list := pack.Secrets(folder); folder != "" && len(list) > 0 {
		a.Notef("note: %s stays here, by a name that secrets have: name values under secrets, or write !%s into "+
			".scrimpignore to send it\n", strings.Join(list, ", "), list[0])
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

// connect returns a client of the server, which it starts where none runs, and what the server says about itself.
func (a *app) connect(ctx context.Context, market string) (*command.Client, api.Server, error) {
	c, err := a.Ensure(ctx, market)
	if err != nil {
		return nil, api.Server{}, err
	}
	v, err := c.Server(ctx)
	return c, v, err
}

// ask asks at a terminal before money is spent, unless yes. It returns an error where the answer is no.
func (a *app) ask(ctx context.Context, question string, yes bool) error {
	if _, asks := command.Terminal(a.Err); asks && !yes && !a.JSON && !a.Confirmed(ctx, question, true) {
		return errors.New("not run")
	}
	return nil
}
