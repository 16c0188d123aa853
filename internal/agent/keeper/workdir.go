package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	gcblob "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/tarball"
	"scrimp/internal/lib/confined"
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
			return k.fetchWork(ctx, dir)
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

// fetchWork fills dir with the job's work folder from the machine's cache and from the server. If the folder changes
// during the transfer, fetchWork empties dir and returns an error, so the caller starts again.
func (k *store) fetchWork(ctx context.Context, dir string) (err error) {
	var query url.Values
	var fill tarball.Filler
	if k.cached = (datacache.Copied{}); k.cache != nil {
		query, fill = url.Values{"light": {"1"}}, k.content
	}
	from, err := k.server.FetchQuery(ctx, "/work", query)
	if err != nil && k.server.ErrorCode(err) == gcerrors.NotFound { // it is missing on the server, so no machine gets it
		return fmt.Errorf("%w: %w", wire.ErrBad, err)
	}
	if err != nil {
		return fenceOf(err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = tarball.UnpackLight(ctx, from, dir, fill)
	if errors.Is(err, httpblob.ErrChanged) {
		return errors.Join(err, empty(dir))
	}
	return fenceOf(err)
}

// content writes a file of the work folder from the machine's cache, or from the server.
func (k *store) content(ctx context.Context, sum string, bytes int64, to *os.File) error {
	hit, err := k.cache.Copy(ctx, sum, bytes, to, func(ctx context.Context) (io.ReadCloser, error) {
		return k.server.FetchQuery(ctx, "/work", url.Values{"content": {sum}})
	})
	if err != nil {
		return err
	}
	k.cached.Files, k.cached.Bytes = k.cached.Files+1, k.cached.Bytes+bytes
	if hit {
		k.cached.Hits, k.cached.HitBytes = k.cached.Hits+1, k.cached.HitBytes+bytes
	}
	return nil
}

// FromCache implements Keeper.
func (k *store) FromCache() datacache.Copied { return k.cached }

// cacheOutputs adds the large files of outputs to the machine's cache: the next stage of a pipeline may read them on
// this machine. Without them it reads them from the server, so errors only end the copying.
func (k *store) cacheOutputs(ctx context.Context, base confined.Folder, names []string) {
	if k.cache == nil || k.a.Workdir != api.ServerWork || k.a.OutputsURL != api.ServerStore {
		return
	}
	tree, err := base.Open()
	if err != nil {
		return
	}
	defer func() { _ = tree.Close() }() // only read
	for _, name := range names {
		err := tree.Walk(filepath.ToSlash(filepath.Clean(name)), func(rel string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil || info.Size() < tarball.LeastLight {
				return err
			}
			f, err := tree.File(rel)
			if err != nil {
				return err
			}
			return errors.Join(k.cache.Add(ctx, f), f.Close())
		})
		if err != nil {
			k.log.Info("the cache lacks some outputs", "output", name, "why", err)
		}
	}
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
