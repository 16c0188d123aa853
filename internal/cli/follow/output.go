package follow

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/lib/wait"
)

// lastOutput bounds how long to wait for the rest of a job's output after the job is closed.
const lastOutput = 10 * time.Second

// Output prints a job's output, and its state changes on stderr, until the job is closed, and then its receipt.
func Output(ctx context.Context, a *command.App, c *command.Client, id string) error {
	streaming, end := context.WithCancel(ctx)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		stream(streaming, a, c, id)
	}()
	shown, before := "", show.Follow{}
	final, err := Watch(ctx, a, c, id, func(j api.Job) {
		if state := j.State + j.Machine + j.Phase; state != shown {
			shown = state
			a.Notef("%s\n", before.Progress(j, a.Line()))
		}
	})
	if err == nil {
		rest := time.AfterFunc(lastOutput, end)
		<-printed
		rest.Stop()
	}
	end()
	<-printed
	return over(ctx, a, c, id, final, err)
}

// stream prints the output of a job until it is closed. It waits for an unreachable server.
func stream(ctx context.Context, a *command.App, c *command.Client, id string) {
	for offset := int64(0); ; {
		r, err := c.Request(ctx, http.MethodGet, command.OfJob(id, "/log?follow=1&offset=")+strconv.FormatInt(offset, 10))
		if err == nil {
			n, _ := io.Copy(a.Out, r.Body) // after an interruption, the next request continues
			_ = r.Body.Close()
			offset += n
			if j, err := c.Job(ctx, id); err == nil && j.Closed {
				return
			}
		}
		if wait.For(ctx, 300*time.Millisecond) != nil {
			return
		}
		if another, err := a.Open(ctx); err == nil {
			c = another
		}
	}
}

// saysKept names the command that copies a job's stored outputs.
func saysKept(ctx context.Context, a *command.App, c *command.Client, j api.Job) {
	var list []api.Outputs
	if j.Outputs == "" || c.Do(ctx, http.MethodGet, command.OfJob(j.ID, "/kept"), nil, &list) != nil {
		return
	}
	if !slices.ContainsFunc(list, func(o api.Outputs) bool { return o.Files > 0 }) { // nothing to copy
		return
	}
	a.Notef("\n%s", artifacts.HasKept(j, list, a.Line()))
}
