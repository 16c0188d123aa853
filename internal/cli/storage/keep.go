package storage

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/market/catalog"
	"scrimp/internal/work/storage"
)

// keepAll adds the paths of --keep to a guard, and returns them as absolute paths and addresses. A relative path counts
// from the current folder and from each scanned folder. keepAll refuses a path that keeps nothing of the places.
func keepAll(g *guard, keep []string, places []storage.Place) (list []string, err error) {
	for _, k := range keep {
		var found []string
		if strings.Contains(k, "://") && !strings.HasPrefix(k, "file://") {
			found = keptObjects(k, places)
		} else if found, err = keptFiles(k, places); err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("--keep %.200q matches nothing in the scanned folders and buckets: write its path, from "+
				"here or from the scanned folder, or its address", k)
		}
		for _, text := range found {
			g.name(text)
		}
		list = append(list, found...)
	}
	return list, nil
}

// keptFiles returns the absolute paths that a path of --keep means.
func keptFiles(k string, places []storage.Place) (found []string, err error) {
	means, err := meanings(k, places)
	for _, abs := range means {
		is := abs
		if !exists(is) { // the guard keeps the folder of a pattern
			is = folderOfPattern(abs)
		}
		touches := func(p storage.Place) bool {
			file := resolved(is)
			return p.Store == storage.Local && (inside(file, p.Name) || inside(is, p.Name) || inside(p.Name, file))
		}
		if exists(is) && slices.ContainsFunc(places, touches) && !slices.Contains(found, abs) {
			found = append(found, abs)
		}
	}
	return found, err
}

// meanings returns the absolute paths that a path of --keep may mean: from here, and from each scanned folder.
func meanings(k string, places []storage.Place) ([]string, error) {
	if k == "" {
		return nil, nil
	}
	if u, err := url.Parse(k); err == nil && u.Scheme == "file" {
		k = path.Join(u.Path, u.Query().Get("prefix"))
	}
	if rest, ok := strings.CutPrefix(k, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("--keep: %w", err)
		}
		k = filepath.Join(home, rest)
	}
	here, err := filepath.Abs(k)
	if err != nil {
		return nil, fmt.Errorf("--keep: %w", err)
	}
	means := []string{here}
	for _, p := range places {
		if p.Store == storage.Local && !filepath.IsAbs(k) {
			means = append(means, filepath.Join(p.Name, k))
		}
	}
	return means, nil
}

// folderOfPattern returns the folder of a pattern, or the text itself if it is none. Addresses are no patterns.
func folderOfPattern(text string) string {
	if i := strings.IndexAny(text, "*?[{"); i >= 0 && !strings.Contains(text[:i], "://") {
		return path.Dir(text[:i] + "x")
	}
	return text
}

// keptObjects returns the address if one of the places is in its bucket.
func keptObjects(address string, places []storage.Place) []string {
	bucket, at, ok := bucketOf(address)
	for _, p := range places {
		mine, _, _ := bucketOf(p.Name)
		same := bucket == mine && (strings.HasPrefix(at, p.Prefix) || strings.HasPrefix(p.Prefix, at))
		if ok && p.Store != storage.Local && p.Store == catalog.Store(address) && (same || p.Store == "azure") {
			return []string{address}
		}
	}
	return nil
}
