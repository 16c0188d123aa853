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

// compare orders paths so that a folder comes directly before its contents: a slash is less than any other byte.
func compare(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/' || y != '/' && x < y:
			return -1
		default:
			return 1
		}
	}
	return cmp.Compare(len(a), len(b))
}

// byPath orders items by their paths.
func byPath(a, b workdir.Item) int { return compare(a.Path, b.Path) }

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
	return NewTree(items).contents(paths)
}

func (t *Tree) contents(paths []string) (list []pipeline.Content, missing, beyond string) {
	t.beyond = ""
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

// Absent returns the first of the paths that does not exist; "": none.
func (t *Tree) Absent(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	_, missing, _ := t.contents(paths)
	return missing
}

// Tree is an index of a folder that can follow links. Its items lie in parts, so that the many stages of a pipeline
// share the index of the files that were sent.
type Tree struct {
	parts  []*part
	beyond string
}

// part holds some items of a folder, sorted by path.
type part struct {
	items []workdir.Item
	links map[string]string // by path: target of the link
}

// NewTree returns an index of the items.
func NewTree(items []workdir.Item) *Tree { return &Tree{parts: []*part{newPart(items)}} }

func newPart(items []workdir.Item) *part {
	if !slices.IsSortedFunc(items, byPath) {
		items = slices.SortedStableFunc(slices.Values(items), byPath)
	}
	t := &part{items: items, links: map[string]string{}}
	for _, i := range items {
		if i.Mode&fs.ModeSymlink != 0 {
			t.links[i.Path] = i.Link
		}
	}
	return t
}

// at returns the items at a path and below it, sorted by path; all of them for "" and ".".
func (t *Tree) at(p string) (list []workdir.Item) {
	for _, part := range t.parts {
		items := part.items
		if p != "" && p != "." {
			from, _ := slices.BinarySearchFunc(items, p, func(i workdir.Item, p string) int { return compare(i.Path, p) })
			end := from
			for end < len(items) && inside(p, items[end].Path) {
				end++
			}
			items = items[from:end]
		}
		if list == nil {
			list = items
		} else if len(items) > 0 {
			list = slices.Concat(list, items)
			slices.SortStableFunc(list, byPath)
		}
	}
	return list
}

// items returns all items, sorted by path, each folder once.
func (t *Tree) items() []workdir.Item {
	return slices.CompactFunc(slices.Clone(t.at("")), func(a, b workdir.Item) bool {
		return a.Path == b.Path && a.Mode.IsDir() && b.Mode.IsDir()
	})
}

// link returns the target of the link at a path. is is false if there is no link.
func (t *Tree) link(p string) (to string, is bool) {
	for _, part := range t.parts {
		if to, is = part.links[p]; is {
			return to, true
		}
	}
	return "", false
}

// mostLinks bounds the links followed one after the other.
const mostLinks = 40

// real returns the path with its links resolved; false: they lead out of the folder or in a circle.
func (t *Tree) real(p string) (string, bool) {
	for range mostLinks {
		next := ""
		for at := p; at != "." && at != ""; at = path.Dir(at) {
			if to, is := t.link(at); is {
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
func (t *Tree) digest(at string, deep int) (sum string, there bool) {
	hash := sha256.New()
	if end, ok := t.real(at); !ok {
		t.beyond = at
	} else if end != at {
		to, _ := t.link(at)
		fmt.Fprintf(hash, "at %q\n", to)
		at = end
	}
	for _, i := range t.at(at) {
		rel := strings.TrimPrefix(i.Path, at)
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
func (t *Tree) behind(link string, deep int) (sum string) {
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
