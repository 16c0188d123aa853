package sample

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
)

// File is a file of a work folder.
type File struct {
	Path   string // with slashes
	Digest string // of its content
	// Plain says that it is a regular file without the executable bit: links and programs are never sampled.
	Plain bool
}

// An Input is a path of the data, and which part of it a sampled stage gets.
type Input struct {
	Path string
	How  How
}

// How says what a sampled stage gets of an input.
type How string

// What a sampled stage gets: some rows of a file, some files of a folder, or the input as it is.
const (
	Rows  How = "rows"
	Files How = "files"
	All   How = "whole"
)

// leastFiles is the smallest number of files of a folder of which a sample takes some.
const leastFiles = 20

// Inputs says for each path how a sample takes a part of it. A path is a file or a folder. Declared paths are data; of
// others, a folder counts as data only if all of its files have one extension, and that of no program.
func Inputs(files []File, paths []string, declared bool) (list []Input) {
	for _, p := range paths {
		list = append(list, input(files, p, declared)...)
	}
	return list
}

func input(files []File, p string, declared bool) (list []Input) {
	in := below(files, p)
	if len(in) == 1 && in[0].Path == p {
		if in[0].Plain && rowFile(p) {
			return []Input{{p, Rows}}
		}
		return []Input{{p, All}}
	}
	if len(in) >= leastFiles && (declared || alike(in)) {
		return []Input{{p, Files}}
	}
	for _, f := range in {
		if f.Plain && rowFile(f.Path) {
			list = append(list, Input{f.Path, Rows})
		}
	}
	if len(list) == 0 {
		list = []Input{{p, All}}
	}
	return list
}

// below returns the files at a path or below it.
func below(files []File, p string) (list []File) {
	for _, f := range files {
		if p == "." || f.Path == p || strings.HasPrefix(f.Path, p+"/") {
			list = append(list, f)
		}
	}
	return list
}

// programs are extensions of files of which a program needs all.
var programs = []string{"", ".c", ".cc", ".cpp", ".cu", ".go", ".h", ".hpp", ".ipynb", ".java", ".jl", ".js", ".lua",
	".py", ".r", ".rs", ".scala", ".sh", ".so", ".toml", ".ts", ".yaml", ".yml"}

// alike reports whether all files are plain and have one extension, which is that of no program.
func alike(files []File) bool {
	ext := strings.ToLower(path.Ext(files[0].Path))
	return !slices.Contains(programs, ext) && !slices.ContainsFunc(files, func(f File) bool {
		return !f.Plain || strings.ToLower(path.Ext(f.Path)) != ext
	})
}

// Chosen returns the paths of the files that the part takes of a folder: those with the lowest digests of path and
// content, which does not depend on the order of the files.
func Chosen(part Part, files []File, folder string) map[string]bool {
	in := below(files, folder)
	rank := make(map[string]string, len(in))
	for _, f := range in {
		sum := sha256.Sum256([]byte(f.Path + "\x00" + f.Digest))
		rank[f.Path] = hex.EncodeToString(sum[:])
	}
	slices.SortFunc(in, func(a, b File) int { return strings.Compare(rank[a.Path], rank[b.Path]) })
	chosen := map[string]bool{}
	for _, f := range in[:part.of(len(in))] {
		chosen[f.Path] = true
	}
	return chosen
}
