package stages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"scrimp/internal/server/workdir"
	"scrimp/internal/work/pipeline"
)

// compare orders paths so that a folder comes directly before its contents.
func compare(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// below reports whether a path is in the list, below an entry, or a parent of one.
func below(list []string, p string) bool {
	return slices.ContainsFunc(list, func(at string) bool {
		return p == at || strings.HasPrefix(p, at+"/") || strings.HasPrefix(at, p+"/")
	})
}

// contents returns the digests of the files and folders at paths, in their order; without paths, the digest of
// everything as ".". missing is a path where there is nothing. beyond is a link that leads out of the folder, so
// that its content is unknown.
func contents(items []workdir.Item, paths []string) (list []pipeline.Content, missing, beyond string) {
	t := newTree(items)
	if len(paths) == 0 {
		d, _ := t.digest("", 0)
		return []pipeline.Content{{Path: ".", Digest: d}}, "", t.beyond
	}
	for _, p := range paths {
		d, there := t.digest(p, 0)
		if !there && missing == "" {
			missing = p
		}
		list = append(list, pipeline.Content{Path: p, Digest: d})
	}
	return list, missing, t.beyond
}

// Absent returns the first of the paths that does not exist among the items; "": none.
func Absent(items []workdir.Item, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	_, missing, _ := contents(items, paths)
	return missing
}

// tree is an index of a folder that can follow links.
type tree struct {
	items  []workdir.Item
	links  map[string]string // by path: target of the link
	beyond string
}

func newTree(items []workdir.Item) *tree {
	t := &tree{items: items, links: map[string]string{}}
	for _, i := range items {
		if i.Mode&fs.ModeSymlink != 0 {
			t.links[i.Path] = i.Link
		}
	}
	return t
}

// mostLinks bounds the links followed one after the other.
const mostLinks = 40

// real returns the path with its links resolved; false: they lead out of the folder or in a circle.
func (t *tree) real(p string) (string, bool) {
	for range mostLinks {
		next := ""
		for at := p; at != "." && at != ""; at = path.Dir(at) {
			if to, is := t.links[at]; is {
				if path.IsAbs(to) {
					return "", false
				}
				next = path.Join(path.Dir(at), to, strings.TrimPrefix(p, at))
				break
			}
		}
		switch {
		case next == "":
			return p, true
		case next == ".." || strings.HasPrefix(next, "../"):
			return "", false
		}
		p = next
	}
	return "", false
}

// digest hashes what is at a path: names, contents, link targets with what is there, and whether files are
// executable. Times and other permissions do not count.
func (t *tree) digest(at string, deep int) (sum string, there bool) {
	hash := sha256.New()
	if end, ok := t.real(at); !ok {
		t.beyond = at
	} else if end != at {
		fmt.Fprintf(hash, "at %q\n", t.links[at])
		at = end
	}
	for _, i := range t.items {
		rel, found := strings.CutPrefix(i.Path, at)
		if at != "" && at != "." && (!found || rel != "" && rel[0] != '/') {
			continue
		}
		there = true
		switch {
		case i.Mode.IsDir():
		case i.Mode&fs.ModeSymlink != 0:
			fmt.Fprintf(hash, "link %q %q %s\n", rel, i.Link, t.behind(i.Path, deep))
		default:
			kind := "file"
			if i.Mode&0o100 != 0 {
				kind = "program"
			}
			fmt.Fprintf(hash, "%s %q %s %d\n", kind, rel, cmp.Or(i.Sum, i.Name), i.Size)
		}
	}
	if !there {
		return "", false
	}
	return hex.EncodeToString(hash.Sum(nil)), true
}

// behind returns the digest of what a link leads to. It returns "" if the link leads to a folder that contains it, or
// if too many links lead to it.
func (t *tree) behind(link string, deep int) (sum string) {
	end, ok := t.real(link)
	if !ok {
		t.beyond = link
		return ""
	}
	if deep < mostLinks && !strings.HasPrefix(link+"/", end+"/") {
		sum, _ = t.digest(end, deep+1)
	}
	return sum
}
