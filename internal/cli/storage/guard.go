package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/cli/command"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/storage"
)

// A guard knows what must not be deleted: what live jobs and groups name, what the user keeps, the data folders of
// servers, and stores of scrimp.
type guard struct {
	data   string // the data folder
	paths  map[string]bool
	others []string // addresses and paths that were named, for buckets
	hidden int      // live jobs and groups of other teams, whose paths are unknown
	server bool     // a server answered
	away   error    // a server exists but does not answer; nil: none does
}

// ownStores lists the folders that a store of scrimp has side by side.
var ownStores = []string{"manifests", "objects", "claims", "outputs"}

// databaseName is the file that only a data folder has.
const databaseName = "scrimp.db"

func newGuard(data string) *guard {
	g := &guard{paths: map[string]bool{}}
	if abs, err := filepath.Abs(data); err == nil {
		g.data = resolved(abs)
	}
	return g
}

// resolved follows symbolic links as far as the path exists.
func resolved(name string) string {
	if r, err := filepath.EvalSymlinks(name); err == nil {
		return r
	}
	return filepath.Clean(name)
}

// name adds a path or an address that must stay.
func (g *guard) name(text string) {
	text = folderOfPattern(text)
	if strings.HasPrefix(text, "file://") {
		if u, err := url.Parse(text); err == nil {
			text = path.Join(u.Path, u.Query().Get("prefix"))
		}
	}
	if text == "~" || strings.HasPrefix(text, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return
		}
		text = filepath.Join(home, text[1:])
	}
	if filepath.IsAbs(text) {
		g.paths[filepath.Clean(text)] = true
		g.paths[resolved(text)] = true
		return
	}
	if strings.Contains(text, "://") {
		g.others = append(g.others, text)
	}
}

// ask asks the server what live jobs and groups need.
func (g *guard) ask(ctx context.Context, a *command.App) error {
	c, err := a.Open(ctx)
	if errors.Is(err, command.ErrNoServer) {
		if _, exists := os.Lstat(filepath.Join(g.data, databaseName)); exists == nil {
			g.away = err
		}
		return nil
	}
	if err != nil {
		return err
	}
	v, err := usageOf(ctx, c)
	if err != nil {
		g.away = err
		return nil
	}
	g.server, g.hidden = true, v.Hidden
	for _, text := range v.Needed {
		g.name(text)
	}
	return nil
}

// above returns why a place must stay as a whole: it is in a data folder or in a store, or a live job needs it.
func (g *guard) above(top string) (held storage.Reason, only bool) {
	for dir := top; ; dir = filepath.Dir(dir) {
		switch {
		case g.paths[dir]:
			return storage.Needed, false
		case dir == g.data, dir != top && exists(filepath.Join(dir, databaseName)):
			return storage.ServerData, false
		case dir != top && ownStore(func(name string) bool { return exists(filepath.Join(dir, name)) }):
			held, only = storage.OwnStore, true
		}
		if dir == filepath.Dir(dir) {
			return held, only
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// ownStore reports whether a folder with these entries is a store of scrimp.
func ownStore(has func(name string) bool) bool {
	n := 0
	for _, name := range ownStores {
		if has(name) {
			n++
		}
	}
	return n >= 2 && (has("claims") || has("manifests") || has("objects"))
}

// folder returns why a folder must stay with all that is in it.
func (g *guard) folder(root *os.Root, top, name string) (held storage.Reason, only bool) {
	abs := filepath.Join(top, name)
	has := func(entry string) bool {
		_, err := root.Lstat(path.Join(name, entry))
		return err == nil
	}
	switch {
	case g.paths[abs]:
		return storage.Needed, false
	case abs == g.data || has(databaseName):
		return storage.ServerData, false
	case ownStore(has):
		return storage.OwnStore, true
	}
	return "", false
}

// needed reports whether a live job or group names a file itself.
func (g *guard) needed(abs string) bool { return g.paths[abs] }

// object returns why an object of a bucket must stay.
func (g *guard) object(p storage.Place, key string) bool {
	full := p.Prefix + key
	for _, other := range g.others {
		if catalog.Store(other) != p.Store {
			continue
		}
		bucket, at, ok := bucketOf(other)
		if mine, _, _ := bucketOf(p.Name); !ok || p.Store == "azure" || bucket == mine && strings.HasPrefix(full, at) {
			return true // an address of Azure has many forms: each keeps all containers
		}
	}
	return false
}

// bucketOf splits an address into bucket and prefix.
func bucketOf(address string) (bucket, prefix string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", "", false
	}
	prefix = strings.Trim(u.Query().Get("prefix"), "/")
	if rest := strings.TrimPrefix(u.Path, "/"); rest != "" {
		prefix = rest
	}
	if i := strings.IndexAny(prefix, "*?[{"); i >= 0 {
		prefix = prefix[:i]
	}
	return u.Host, prefix, true
}

// mayDelete returns an error if nobody knows what live jobs need.
func (g *guard) mayDelete() error {
	if g.away != nil {
		return fmt.Errorf("the server does not say what live jobs need, so nothing is deleted: start it with scrimp serve, "+
			"or log in again: %w", g.away)
	}
	return nil
}

// checkOverlap returns an error if a place lies in another.
func checkOverlap(places []storage.Place) error {
	for i, p := range places {
		for j, q := range places {
			if i == j || p.Store != q.Store {
				continue
			}
			if p.Store == storage.Local && inside(p.Name, q.Name) || p.Store != storage.Local && sameBucket(p, q) {
				return fmt.Errorf("%s lies in %s: give one of them", p.Name, q.Name)
			}
		}
	}
	return nil
}

func sameBucket(p, q storage.Place) bool {
	a, _, _ := bucketOf(p.Name)
	b, _, _ := bucketOf(q.Name)
	return a == b && strings.HasPrefix(p.Prefix, q.Prefix)
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
