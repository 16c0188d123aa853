package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/workdir"
	"scrimp/internal/server/workdir/pack"
	serverapi "scrimp/internal/wire/api"
)

// SendFolder uploads a work folder to a server that cannot read this machine's files.
func (c *Client) SendFolder(ctx context.Context, folder string) (work string, err error) {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() { // ends when the request has read or closed the pipe
		err := pack.Pack(w, folder, c.Dir)
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

// FetchOutputs copies the stored outputs of a job's machine to an empty folder. It verifies each file's hash.
func (c *Client) FetchOutputs(ctx context.Context, job string, node int, to string) error {
	if c.Far {
		return c.unpack(ctx, OfJob(job, "/outputs?node=")+strconv.Itoa(node), to)
	}
	bucket, err := blob.Open(ctx, artifacts.Address(c.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	_, err = checkpoint.Open(bucket, artifacts.OwnKeys(job)).Fetch(ctx, serverapi.OutputsName(job, node), to)
	return err
}

// FetchCheckpoint copies the files of a checkpoint to an empty folder.
func (c *Client) FetchCheckpoint(ctx context.Context, job, name, to string) error {
	return c.unpack(ctx, OfJob(job, "/checkpoints/")+url.PathEscape(name), to)
}

// unpack writes the files in the server's response to an empty folder.
func (c *Client) unpack(ctx context.Context, path, to string) error {
	r, err := c.Request(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	return workdir.Unpack(r.Body, to)
}

// FillFolder makes fill write to an empty folder and then moves the files to a folder that may have contents. Files
// with the same path are replaced, once all files are complete; others stay.
func FillFolder(to string, fill func(dir string) error) (err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	defer func() { _ = os.Remove(to) }() // succeeds only if it is empty
	stage, err := os.MkdirTemp(to, ".scrimp-get-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := fill(stage); err != nil {
		return err
	}
	root, err := os.OpenRoot(to) // the folder may contain links
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return moveAll(root, filepath.Base(stage), ".")
}

// moveAll moves the contents of a folder into another folder of the same root.
func moveAll(root *os.Root, from, to string) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(from))
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		there, err := root.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case there.IsDir() && e.IsDir():
			if err := moveAll(root, source, target); err != nil {
				return err
			}
			continue
		case there.IsDir():
			return fmt.Errorf("%s is a folder here and a file there: move it away", target)
		case e.IsDir():
			if err := root.Remove(target); err != nil {
				return err
			}
		}
		if err := root.Rename(source, target); err != nil {
			return err
		}
	}
	return nil
}
