package storage

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/storage"
)

// bucketPlace parses the address of a bucket. A path in it becomes the prefix, as blob.Open reads it.
func bucketPlace(address string) (storage.Place, error) {
	store := catalog.Store(address)
	u, err := url.Parse(address)
	if err != nil || store == "" || u.Host == "" {
		return storage.Place{}, fmt.Errorf("%q is neither a folder nor a bucket: write a path, s3://BUCKET, gs://BUCKET or "+
			"azblob://CONTAINER?account=NAME", address)
	}
	if u.User != nil {
		return storage.Place{}, fmt.Errorf("the address of %s names a user: leave the user out, credentials come from the "+
			"environment", u.Host)
	}
	_, prefix, _ := bucketOf(address)
	q := u.Query()
	if u.Path = ""; prefix != "" {
		prefix = strings.Trim(prefix, "/") + "/"
		q.Set("prefix", strings.TrimSuffix(prefix, "/"))
	}
	u.RawQuery = q.Encode()
	return storage.Place{Name: u.String(), Store: store, Prefix: prefix}, nil
}

// storeFolders lists the folders below which all objects of a store of scrimp are.
var storeFolders = []string{"claims", "fences", "manifests", "objects", "starts", "shares", "outputs"}

// bucket reads a bucket, a page at a time.
func (s *scanner) bucket(ctx context.Context, place int, p storage.Place, b *gocloud.Bucket) error {
	stores := map[string]bool{}
	for list := b.List(nil); ; {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f := storage.File{Place: place, Path: o.Key, Bytes: o.Size, Used: o.ModTime, Changed: o.ModTime,
			Class: blob.Class(o)}
		if len(o.MD5) > 0 {
			f.ID = hex.EncodeToString(o.MD5)
		}
		own, err := inStore(ctx, b, stores, o.Key)
		switch {
		case err != nil:
			return err
		case s.guard.object(p, o.Key):
			f.Held = storage.Needed
		case own:
			f.Held, f.HeldOnly = storage.OwnStore, true
		case !fs.ValidPath(o.Key):
			f.Held, f.HeldOnly = storage.OddName, true
		}
		s.found(f)
	}
}

// inStore reports whether a key belongs to a store of scrimp, which has manifests or claims beside its other folders.
func inStore(ctx context.Context, b *gocloud.Bucket, known map[string]bool, key string) (bool, error) {
	parts := strings.Split(key, "/")
	for i, part := range parts[:len(parts)-1] {
		if !slices.Contains(storeFolders, part) {
			continue
		}
		top := strings.Join(parts[:i], "/")
		if top != "" {
			top += "/"
		}
		is, asked := known[top]
		if !asked {
			for _, beside := range []string{"manifests/", "claims/"} {
				page, _, err := b.ListPage(ctx, gocloud.FirstPageToken, 1, &gocloud.ListOptions{Prefix: top + beside})
				if err != nil {
					return false, err
				}
				is = is || len(page) > 0
			}
			known[top] = is
		}
		if is {
			return true, nil
		}
	}
	return false, nil
}
