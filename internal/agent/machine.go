package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// memory is the machine's, in bytes; 0: it does not say.
func memory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

// remove removes all that a task had on the machine.
func (f folders) remove() error {
	return errors.Join(removeAll(f.top), removeAll(f.own))
}

// removeAll removes a folder, also where a program left folders in it that nobody may
// write to.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700) // a folder must be entered to be emptied
		}
		return err
	})
	return os.RemoveAll(dir)
}
