package main

import (
	"os"
	"path/filepath"

	"scrimp/internal/test/image"
)

// archive packs the program with its manual into one folder.
func (p parts) archive(stem string) ([]byte, error) {
	list := []image.File{{Path: "bin/scrimp", Body: p.binary, Mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(p.Root, name))
		if err != nil {
			return nil, err
		}
		list = append(list, image.File{Path: name, Body: text})
	}
	all, err := image.Tar(append(list, p.manual...), stem+"/", p.When)
	if err != nil {
		return nil, err
	}
	return image.Gzip(all)
}
