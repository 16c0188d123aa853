package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"scrimp/internal/blob"
	"scrimp/internal/checkpoint"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/workdir"
)

// SendFolder uploads a work folder to a server that does not see this machine's files.
func (c *Client) SendFolder(ctx context.Context, folder string) (work string, err error) {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() { // ends when the request has read or dropped the pipe
		err := workdir.Pack(w, folder, c.Dir)
		_ = w.CloseWithError(err)
		packed <- err
	}()
	work, err = c.Send(ctx, r)
	err = c.Said(ctx, err)
	_ = r.CloseWithError(err)
	if wrong := <-packed; wrong != nil && err == nil {
		err = wrong
	}
	if err != nil {
		return "", fmt.Errorf("send the work folder: %w", err)
	}
	return work, nil
}

// FetchOutputs copies a job's outputs here, each file checked against its hash.
func (c *Client) FetchOutputs(ctx context.Context, job, to string) error {
	if c.Far {
		r, err := c.Request(ctx, http.MethodGet, OfJob(job, "/outputs"))
		if err != nil {
			return err
		}
		defer func() { _ = r.Body.Close() }()
		if err := os.MkdirAll(to, 0o755); err != nil {
			return fmt.Errorf("copy outputs: %w", err)
		}
		if err := workdir.Unpack(r.Body, to); err != nil {
			return fmt.Errorf("copy outputs: %w", err)
		}
		return nil
	}
	bucket, err := blob.Open(ctx, kept.Address(c.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	_, err = checkpoint.Open(bucket, kept.OwnKeys(job)).Fetch(ctx, job, to)
	return err
}
