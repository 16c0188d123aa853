package workdir

import (
	"errors"
	"os"
	"path/filepath"

	"scrimp/internal/ignore"
)

// ignoreName is the file that says what is not copied to machines.
const ignoreName = ".scrimpignore"

// habits are left out wherever the file does not take them back in.
const habits = ".git/\n__pycache__/\n.venv/\nnode_modules/\n"

// ignoreFile returns whether a path below the folder is left out.
func ignoreFile(folder string) (func(rel string, isFolder bool) bool, error) {
	text, err := os.ReadFile(filepath.Join(folder, ignoreName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	patterns := ignore.Parse(habits + string(text))
	return func(rel string, isFolder bool) bool { return patterns.Match(filepath.ToSlash(rel), isFolder) }, nil
}
