//go:build !linux

package store

import (
	"fmt"
	"path/filepath"
)

// placeOf is the file's path.
func placeOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return "path/" + abs, nil
}
