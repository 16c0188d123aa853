package jobs

import (
	"context"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
)

// Starter submits and resumes jobs for commands of other packages.
type Starter struct{ a *app }

// NewStarter returns a Starter.
func NewStarter(shared *command.App) Starter { return Starter{&app{shared}} }

// Connect returns a client of the server, which it starts where none runs.
func (s Starter) Connect(ctx context.Context, market string) (*command.Client, error) {
	return s.a.Ensure(ctx, market)
}

// Submit submits a job with a folder; empty for none.
func (s Starter) Submit(ctx context.Context, c *command.Client, b api.Submission, j spec.Job, folder string) (api.Job,
	error) {
	return submit.Job(ctx, s.a.App, c, b, j, folder)
}

// Resume resumes a job with the secrets and variables of this shell.
func (s Starter) Resume(ctx context.Context, c *command.Client, job string, b api.Resume) (api.Job, error) {
	return submit.Resume(ctx, c, job, b)
}

// Closed prints the receipt of a job that has ended.
func (s Starter) Closed(ctx context.Context, c *command.Client, j api.Job) error {
	return s.a.closed(ctx, c, j)
}
