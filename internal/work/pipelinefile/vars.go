package pipelinefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/pipelinefile/document"
)

// load returns the map in a parameter file, or nil if there is none. Only an optional file may be missing.
func (r *reader) load(file string, at *yaml.Node, optional bool) *yaml.Node {
	if n, known := r.files[file]; known {
		return n
	}
	r.files[file] = nil
	if file == ".." || strings.HasPrefix(file, "../") || path.IsAbs(file) {
		r.wrong(at, file, "lies outside the folder of the pipeline", "name a file below it")
		return nil
	}
	text, err := r.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		if optional {
			delete(r.files, file)
			return nil
		}
		err = errors.New("is not there")
	}
	var n *yaml.Node
	if err == nil {
		n, err = document.Read(file, text)
	}
	if err == nil && isNull(n) {
		n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if err == nil && n.Kind != yaml.MappingNode {
		err = errors.New("is no map")
	}
	if err != nil {
		r.wrong(at, file, err.Error(), "correct the file, or name another under vars or params")
		return nil
	}
	before := r.file
	r.file = file
	n = r.plain(n, "", 0)
	r.file = before
	r.files[file] = n
	return n
}

// withVars adds the values of a vars list: files, parts of files, and values. The files' paths are relative to folder.
func (r *reader) withVars(vars, list *yaml.Node, folder, field string) *yaml.Node {
	if list.Kind != yaml.SequenceNode {
		r.wrong(list, field, "is no list", "begin each file and each map of values with a dash")
		return vars
	}
	for _, n := range list.Content {
		from := n
		if n.Kind == yaml.ScalarNode {
			if from = r.fromFile(n, folder, field); from == nil {
				continue
			}
		}
		if from.Kind != yaml.MappingNode {
			r.wrong(n, field, "has an entry that is neither a file nor a map", "write a path, or NAME: value")
			continue
		}
		vars = merge(vars, from, "", func(name string) {
			r.wrong(n, field, "gives "+name+" another value than it has already", "rename one of the two")
		})
	}
	return vars
}

// fromFile returns what an entry of vars takes from a file: PATH, or PATH:NAME,NAME.
func (r *reader) fromFile(n *yaml.Node, folder, field string) *yaml.Node {
	file, names, part := strings.Cut(n.Value, ":")
	all := r.load(path.Join(folder, file), n, false)
	if all == nil || !part {
		return all
	}
	some := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		v := document.In(all, name)
		if v == nil {
			r.wrong(n, field, fmt.Sprintf("takes %.60s from %s, which has none", name, file), "name a value at its top")
			continue
		}
		some.Content = append(some.Content, str(n, name), v)
	}
	return some
}

// param is a value that a stage reads, or a whole file of values.
type param struct {
	at         *yaml.Node
	file, name string // empty name: the whole file
}

// params reads the list of a stage's params.
func (r *reader) params(list *yaml.Node, folder, field string) (all []param) {
	file := path.Join(folder, "params.yaml")
	for _, n := range items(list) {
		switch {
		case n.Kind == yaml.ScalarNode && !isNull(n):
			all = append(all, param{n, file, n.Value})
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				of, names := path.Join(folder, n.Content[i].Value), items(n.Content[i+1])
				if len(names) == 0 {
					all = append(all, param{n.Content[i], of, ""})
				}
				for _, name := range names {
					if name.Kind != yaml.ScalarNode || isNull(name) {
						r.wrong(name, field, "has an entry that is not a name", "write names of values below the file")
						continue
					}
					all = append(all, param{name, of, name.Value})
				}
			}
		default:
			r.wrong(n, field, "has an entry that is not a name", "write the names of values, or FILE: with names below it")
		}
	}
	return all
}

// items returns the items of a list; a scalar counts as a list of one.
func items(n *yaml.Node) []*yaml.Node {
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	}
	return []*yaml.Node{n}
}

// take reads the values of a stage's params. A file that another stage makes is an input as a whole, because its values
// are unknown yet.
func (r *reader) take(s *stage) {
	for _, p := range s.params {
		field := "stages." + s.Name + ".params"
		if r.made(p.file) {
			if !slices.Contains(s.Deps, p.file) {
				s.Deps = append(s.Deps, p.file)
			}
			continue
		}
		all := r.load(p.file, p.at, false)
		if all == nil {
			continue
		}
		name, v := p.name, all
		if name != "" {
			var err error
			if v, err = (scope{vars: all}).lookup(name); err != nil {
				r.wrong(p.at, field, fmt.Sprintf("names %.60s, which %s does not have", name, p.file), "name one of its values")
				continue
			}
		}
		if p.file != "params.yaml" || name == "" {
			name = p.file + ":" + name
		}
		text := document.JSON(v)
		if len(text) > pipeline.MaxText {
			sum := sha256.Sum256(text)
			text = []byte(`"sha256:` + hex.EncodeToString(sum[:]) + `"`)
		}
		if s.Params == nil {
			s.Params = map[string]string{}
		}
		s.Params[name] = string(text)
	}
}

// made reports whether a stage makes a path.
func (r *reader) made(file string) bool {
	if r.outs == nil {
		r.outs = map[string]bool{}
		for _, s := range r.stages {
			for _, o := range s.Outs {
				r.outs[path.Clean(o)] = true
			}
		}
	}
	for up := file; up != "." && up != "/"; up = path.Dir(up) {
		if r.outs[up] {
			return true
		}
	}
	return false
}
