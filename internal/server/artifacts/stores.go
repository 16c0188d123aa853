package artifacts

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/auth"
)

// Stores are the stores that job files may name in checkpoint.store. The server opens such an address with its own
// rights: it makes the folder, calls the endpoint and signs with its keys. So a shared server opens only the stores
// that an admin lists, and paths within them.
type Stores struct {
	all    bool // the server's only user can do all this anyway
	within []*url.URL
	data   string // the data folder, in which no job may have a store
}

// NewStores returns the stores at the given addresses; all allows every address.
func NewStores(all bool, addresses []string, data string) (Stores, error) {
	s := Stores{all: all, data: filepath.ToSlash(filepath.Clean(data))}
	for _, a := range addresses {
		u := storeAt(a)
		if u == nil {
			return s, fmt.Errorf("--stores %s: not the address of a store: write file:///FOLDER, s3://BUCKET?region=NAME, "+
				"gs://BUCKET or azblob://CONTAINER?account=NAME", a)
		}
		s.within = append(s.within, u)
	}
	return s, nil
}

// storeAt parses an address; nil: no job may have it. Package blob refuses an address with a user.
func storeAt(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Opaque != "" || !spec.IsStore(address) {
		return nil
	}
	if u.Scheme != "file" && u.Host == "" || u.Scheme == "file" && !path.IsAbs(u.Path) {
		return nil
	}
	return u
}

// Allows reports whether a job may name a store; "" is the server's own.
func (s Stores) Allows(address string) bool {
	if s.all || address == "" {
		return true
	}
	u := storeAt(address)
	if u == nil || u.Scheme == "file" && (below(u.Path, s.data) || below(folderOf(u), s.data)) {
		return false
	}
	return slices.ContainsFunc(s.within, func(of *url.URL) bool { return isWithin(u, of) })
}

// Shown lists the stores that job files may name, for messages.
func (s Stores) Shown() string {
	if len(s.within) == 0 {
		return "none"
	}
	var list []string
	for _, u := range s.within {
		list = append(list, u.String())
	}
	return strings.Join(list, ", ")
}

// Fix returns the advice for a store that is not allowed.
func (s Stores) Fix() string {
	return "leave checkpoint.store out, and the server keeps the checkpoints; an admin allows others with " +
		"scrimp serve --stores (now: " + s.Shown() + ")"
}

// OfJob reports whether the server opens the store of a job: one that the data folder's owner named, or one that is
// allowed now.
func (s Stores) OfJob(user, address string) bool { return user == auth.OwnerName || s.Allows(address) }

// isWithin reports whether a store equals another or is a part of it: the same bucket with the same options, or a
// folder within the folder.
func isWithin(u, of *url.URL) bool {
	mine, its := u.Query(), of.Query()
	prefix, at := mine.Get("prefix"), its.Get("prefix")
	mine.Del("prefix")
	its.Del("prefix")
	switch {
	case u.Scheme != of.Scheme || u.Host != of.Host || !maps.EqualFunc(mine, its, slices.Equal):
		return false
	case u.Scheme == "file":
		return below(folderOf(u), folderOf(of)) && !hasDotDot(prefix)
	}
	return strings.Trim(u.Path, "/") == "" && !hasDotDot(prefix) && below("/"+prefix, "/"+at)
}

// folderOf returns the folder in which a store keeps its blobs.
func folderOf(u *url.URL) string { return path.Join(u.Path, u.Query().Get("prefix")) }

func hasDotDot(prefix string) bool { return slices.Contains(strings.Split(prefix, "/"), "..") }

// below reports whether a path is a folder or within it.
func below(name, folder string) bool {
	name, folder = path.Clean(name), path.Clean(folder)
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}
