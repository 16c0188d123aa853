//go:build !linux

package fileid

import (
	"fmt"
	"path/filepath"
)

// Of returns the path of the file or folder.
func Of(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return "path/" + abs, nil
}
