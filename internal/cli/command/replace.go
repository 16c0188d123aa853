package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	api "scrimp/client"
	"scrimp/internal/server"
)

// Replace ends the server of the folder if a command started it, so that scrimp serve can take over; the jobs go on. It
// refuses to end another scrimp serve, which other people may use.
func (a *App) Replace(ctx context.Context, dir string) error {
	c, err := here(ctx, dir)
	var v api.Server
	if err == nil {
		v, err = c.answer(ctx)
	}
	switch {
	case errors.Is(err, ErrNoServer):
		return nil
	case err != nil:
		return err
	case v.Shared:
		return fmt.Errorf("another scrimp serve has %s (process %d, %s): use that one, or end it with scrimp --data %s "+
			"--server local server stop", dir, v.PID, cmp.Or(v.Listens, "without an address"), dir)
	}
	a.Notef("A command started the server of %s (process %d): scrimp serve takes over, and the jobs go on.\n", dir, v.PID)
	if err := c.Do(ctx, http.MethodPost, "/v1/server/stop", api.StopServer{}, nil); err != nil {
		return fmt.Errorf("end the server that a command started: %w", err)
	}
	return Gone(ctx, v.PID, server.Leaves)
}
