package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/blob/httpblob"
	"scrimp/internal/tarball"
)

// fetchWork fills dir with the job's work folder from the server. Where that changed on the
// way, dir is emptied and it is fetched from its beginning.
func fetchWork(ctx context.Context, store *httpblob.Bucket, dir string) (err error) {
	from, err := store.Fetch(ctx, "/work")
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

// empty removes what lies in a folder.
func empty(dir string) error {
	names, err := os.ReadDir(dir)
	for _, n := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, n.Name())))
	}
	return err
}

// inside joins a name from outside to folder dir, and refuses one that leads out of it.
func inside(dir, name string) (string, error) {
	clean := filepath.FromSlash(strings.TrimPrefix(name, "/"))
	if clean == "" || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("name %q leads out of its folder", name)
	}
	return filepath.Join(dir, clean), nil
}
