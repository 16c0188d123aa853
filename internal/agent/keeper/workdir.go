package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	gcblob "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/tarball"
	"scrimp/internal/wire/api"
)

// Fetch supports three forms of address. scrimp:work is the job's work folder, in the bucket for
// which the server lends credentials or on the server. ADDRESS#NAME is a name in a checkpoint
// store. ADDRESS alone is a store whose blobs are the files.
func (k *store) Fetch(ctx context.Context, address, dir string) error {
	place, name := splitName(address)
	if address == api.ServerWork && k.a.WorkLent && k.bucket != nil && k.works != nil {
		if done, err := k.fetchLent(ctx, dir); done || err != nil {
			return err
		}
	}
	return patiently(ctx, k.log, func(ctx context.Context) (err error) {
		if address == api.ServerWork && k.server != nil {
			return fetchWork(ctx, k.server, dir)
		}
		b, err := k.openStore(ctx, place)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		if name != "" {
			_, err := checkpoint.Open(b, "").Fetch(ctx, name, dir)
			return fenceOf(err)
		}
		return fetchBlobs(ctx, b, dir)
	})
}

func splitName(address string) (place, name string) {
	place, name, _ = strings.Cut(address, "#")
	return place, name
}

func fetchBlobs(ctx context.Context, b *gcblob.Bucket, dir string) error {
	for it := b.List(nil); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path, err := inside(dir, o.Key)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		// Stores have no permissions, and scripts must be executable.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700) // scripts must run
		if err != nil {
			return err
		}
		if err := errors.Join(b.Download(ctx, o.Key, f, nil), f.Close()); err != nil {
			return err
		}
	}
}

// fetchWork fills dir with the job's work folder from the server. If the folder changes during the
// transfer, fetchWork empties dir and returns an error, so the caller starts again.
func fetchWork(ctx context.Context, store *httpblob.Bucket, dir string) (err error) {
	from, err := store.Fetch(ctx, "/work")
	if err != nil && store.ErrorCode(err) == gcerrors.NotFound { // it is missing on the server, so no machine gets it
		return fmt.Errorf("%w: %w", wire.ErrBad, err)
	}
	if err != nil {
		return fenceOf(err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = tarball.Unpack(ctx, from, dir)
	if errors.Is(err, httpblob.ErrChanged) {
		return errors.Join(err, empty(dir))
	}
	return fenceOf(err)
}

// empty removes the content of a folder.
func empty(dir string) error {
	names, err := os.ReadDir(dir)
	for _, n := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, n.Name())))
	}
	return err
}

// inside joins an untrusted name to folder dir, and refuses a name that leads out of it.
func inside(dir, name string) (string, error) {
	clean := filepath.FromSlash(strings.TrimPrefix(name, "/"))
	if clean == "" || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("name %q leads out of its folder", name)
	}
	return filepath.Join(dir, clean), nil
}
