// Package condition reads what the conditions of a schedule compare: new objects of a folder or bucket, prices, and the
// earlier runs. The moves of the planner record its answers, so that a replay reads nothing.
package condition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"

	ours "scrimp/internal/content/blob"
	"scrimp/internal/work/retrain"
)

// Limits on one listing.
const (
	mostObjects = 1_000_000
	longest     = 30 * time.Second
)

// Address returns the address of a path in the form that stores have: file:///FOLDER, or a bucket with its prefix. A
// bucket may have its prefix as a path, as s3://bucket/new.
func Address(path string) (string, error) {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Clean(path))}).String(), nil
	}
	u, err := url.Parse(path)
	switch {
	case err != nil || !slices.Contains([]string{"file", "s3", "gs", "azblob"}, u.Scheme):
		return "", fmt.Errorf("%.80q is neither an absolute folder nor a bucket: write /data/new, s3://bucket/new, "+
			"gs://bucket/new or azblob://container/new?account=NAME", path)
	case u.User != nil:
		return "", errors.New("leave the user out of the address: credentials come from the server's environment")
	case u.Scheme == "file":
		return path, nil
	case u.Host == "":
		return "", fmt.Errorf("%.80q names no bucket", path)
	}
	q := u.Query()
	if below := strings.Trim(u.Path, "/"); below != "" {
		if q.Get("prefix") != "" {
			return "", fmt.Errorf("%.80q has a path and a prefix: write one of them", path)
		}
		q.Set("prefix", below)
	}
	u.Path, u.RawQuery = "", q.Encode()
	return u.String(), nil
}

// List counts the objects below an address that are newer than a mark. Its error is that of a context that has ended;
// what is wrong with the path is in the listing.
func List(ctx context.Context, address string, since retrain.Mark) (retrain.Seen, error) {
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	c := retrain.NewCounter(since, time.Now())
	err := count(limited, address, c.Add)
	switch {
	case ctx.Err() != nil:
		return retrain.Seen{}, context.Cause(ctx)
	case limited.Err() != nil:
		err = fmt.Errorf("the listing took longer than %s: name a folder or prefix with fewer objects", longest)
	}
	seen := c.Seen()
	if err != nil {
		return retrain.Seen{Mark: since, Err: clipped(err.Error())}, nil
	}
	return seen, nil
}

// mostText bounds the text of an error: providers answer with pages.
const mostText = 300

func clipped(text string) string {
	if text = strings.Join(strings.Fields(text), " "); len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return text
}

// count calls add with the time of each object below an address.
func count(ctx context.Context, address string, add func(time.Time)) error {
	n := 0
	each := func(t time.Time) error {
		if n++; n > mostObjects {
			return fmt.Errorf("there are more than %d objects: name a folder or prefix with fewer", mostObjects)
		}
		add(t)
		return ctx.Err()
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Scheme == "file" {
		return countFiles(filepath.FromSlash(u.Path), each)
	}
	b, err := ours.OpenExisting(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // it was only read
	for objects := b.List(nil); ; {
		o, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !isFolder(o) {
			err = each(o.ModTime)
		}
		if err != nil {
			return err
		}
	}
}

// isFolder reports whether an object only stands for a folder, as consoles of clouds make them.
func isFolder(o *blob.ListObject) bool {
	return o.IsDir || o.Size == 0 && strings.HasSuffix(o.Key, "/")
}

// countFiles calls each with the time of each file below a folder. It follows no links within the folder.
func countFiles(folder string, each func(time.Time) error) error {
	root, err := filepath.EvalSymlinks(folder)
	if err == nil {
		var stat fs.FileInfo
		if stat, err = os.Stat(root); err == nil && !stat.IsDir() {
			return fmt.Errorf("%s is a file and no folder", folder)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the server has no folder %s", folder)
	case err != nil:
		return fmt.Errorf("open folder %s: %w", folder, err)
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.Type().IsRegular() {
			return nil
		}
		var stat fs.FileInfo
		if err == nil {
			stat, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && path != root {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		return each(changed(stat))
	})
}
