package stages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"scrimp/internal/content/checkpoint"
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
func partsOf(file checkpoint.File) string {
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
// a path at which nothing lies.
func contents(items []workdir.Item, paths []string) (list []pipeline.Content, missing string) {
	if len(paths) == 0 {
		d, _ := digest(items, "")
		return []pipeline.Content{{Path: ".", Digest: d}}, ""
	}
	for _, p := range paths {
		d, there := digest(items, p)
		if !there && missing == "" {
			missing = p
		}
		list = append(list, pipeline.Content{Path: p, Digest: d})
	}
	return list, missing
}

// digest names what lies at a path: names, contents, what links lead to, and whether a file is run. Times and other
// permissions do not count.
func digest(items []workdir.Item, at string) (sum string, there bool) {
	hash := sha256.New()
	for _, i := range items {
		rel, found := strings.CutPrefix(i.Path, at)
		if at != "" && (!found || rel != "" && rel[0] != '/') {
			continue
		}
		there = true
		switch {
		case i.Mode.IsDir():
		case i.Mode&fs.ModeSymlink != 0:
			fmt.Fprintf(hash, "link %q %q\n", rel, i.Link)
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
		d := json.NewDecoder(&text)
		d.UseNumber()
		if d.Decode(&v) == nil {
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
