package stages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/server/workdir"
	"scrimp/internal/work/pipeline"
)

// compare orders paths so that a folder comes before what lies in it, and all of it together.
func compare(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// below reports whether a path is one of a list, lies in one of them, or is a folder that one of them lies in.
func below(list []string, p string) bool {
	return slices.ContainsFunc(list, func(at string) bool {
		return p == at || strings.HasPrefix(p, at+"/") || strings.HasPrefix(at, p+"/")
	})
}

// partsOf names the content of a kept file: its SHA-256 where it has one part.
func partsOf(file format.File) string {
	if len(file.Parts) == 1 {
		return file.Parts[0].Sum
	}
	sum := sha256.New()
	for _, p := range file.Parts {
		fmt.Fprintf(sum, "%s %d\n", p.Sum, p.Size)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// contents are the digests of what lies at paths, in their order; without paths that of everything, as ".". Missing is
// a path at which nothing lies. Beyond is a link that leads out of the folder: nobody knows what its content is.
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

// Absent is the first of the paths at which nothing lies in a folder of these items, "" for none.
func Absent(items []workdir.Item, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	_, missing, _ := contents(items, paths)
	return missing
}

// tree is what lies in a folder, so that links can be followed.
type tree struct {
	items  []workdir.Item
	links  map[string]string // by path: what a link leads to
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

// mostLinks is how many links are followed after each other.
const mostLinks = 40

// real is the path with its links followed; false: they lead out of the folder, or in a circle.
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

// digest names what lies at a path: names, contents, what links lead to and what lies there, and whether a file is run.
// Times and other permissions do not count.
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
			to := ""
			if end, ok := t.real(i.Path); !ok {
				t.beyond = i.Path
			} else if deep < mostLinks && !strings.HasPrefix(i.Path+"/", end+"/") {
				to, _ = t.digest(end, deep+1)
			}
			fmt.Fprintf(hash, "link %q %q %s\n", rel, i.Link, to)
		default:
			kind := "file"
			if i.Mode&0o100 != 0 {
				kind = "program"
			}
			name := i.Sum
			if name == "" {
				name = i.Name
			}
			fmt.Fprintf(hash, "%s %q %s %d\n", kind, rel, name, i.Size)
		}
	}
	if !there {
		return "", false
	}
	return hex.EncodeToString(hash.Sum(nil)), true
}

// Bounds of what is kept of figures.
const (
	mostFigures   = 200
	longestFigure = 100     // bytes of a name and of a value
	figuresFile   = 1 << 20 // bytes
)

// noNumber is what Python writes where a value is no finite number, and JSON has no word for. The others count.
var noNumber = regexp.MustCompile(`([:\[,]\s*)(?:NaN|-?Infinity)\b`)

// figures are the numbers in JSON files, by name: those within others have the names of both, joined by a dot.
func figures(items []workdir.Item, files []string) map[string]string {
	all := map[string]string{}
	for _, i := range items {
		if !i.Mode.IsRegular() || i.Size > figuresFile || i.Content == nil || !below(files, i.Path) {
			continue
		}
		var text bytes.Buffer
		if i.Content(&text) != nil {
			continue
		}
		var v any
		d := json.NewDecoder(strings.NewReader(noNumber.ReplaceAllString(text.String(), "${1}null")))
		d.UseNumber()
		if d.Decode(&v) == nil && !d.More() {
			gather(all, "", v, 0)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func gather(all map[string]string, name string, v any, deep int) {
	const deepest = 8
	switch v := v.(type) {
	case json.Number:
		if name != "" && len(name) <= longestFigure && len(v) <= longestFigure && len(all) < mostFigures {
			if _, err := pipeline.Decimal(v.String()); err == nil {
				all[name] = v.String()
			}
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if deep < deepest {
				gather(all, strings.TrimPrefix(name+"."+k, "."), v[k], deep+1)
			}
		}
	}
}
