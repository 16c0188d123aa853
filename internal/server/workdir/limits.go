package workdir

import (
	"archive/tar"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir/pack"
)

// Limits of a work folder. A tar file of 130 KB can name a million folders, and one of 2 MB can hold 2 GiB of zeros.
const (
	maxFiles    = 200_000  // files, folders and links
	maxNames    = 32 << 20 // bytes of all paths and link targets
	longestPath = 4096     // bytes
	longestName = 255      // bytes of one name of a path
	deepest     = 64       // folders within one another
	// maxStream is the largest size of a folder as a tar file, in bytes: its files, and some headers for each.
	maxStream = pack.MaxWork + maxFiles*5120
)

// count sums the contents of a folder: the bytes of its files, and their disk usage with folders and links.
type count struct{ bytes, disk, files, names int64 }

// add counts an entry of a folder, or returns which limit it exceeds.
func (c *count) add(name, link string, size int64) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if len(link) > longestPath {
		return fmt.Errorf("the link %.40s… leads to a path of more than %d bytes", name, longestPath)
	}
	if size < 0 || size > pack.MaxWork { // keeps such sizes out of the sums
		return pack.ErrLarge
	}
	c.bytes, c.disk, c.files = c.bytes+size, c.disk+disk.OnDisk(size), c.files+1
	c.names += int64(len(name) + len(link))
	switch {
	case c.disk > pack.MaxWork:
		return pack.ErrLarge
	case c.files > maxFiles:
		return fmt.Errorf("the folder holds more than %d files, folders and links: leave some out with .scrimpignore",
			maxFiles)
	case c.names > maxNames:
		return fmt.Errorf("the paths of the folder have more than %d MiB: leave some out with .scrimpignore", maxNames>>20)
	}
	return nil
}

// checkPath returns what is wrong with the path of an entry.
func checkPath(name string) error {
	if len(name) > longestPath || strings.Count(name, "/") > deepest {
		return fmt.Errorf("the path %.40s… is longer than %d bytes or deeper than %d folders", name, longestPath, deepest)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > longestName {
			return fmt.Errorf("the name %.40s… is longer than %d bytes", part, longestName)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("the path %s leads out of the folder", quote(name))
	}
	return nil
}

// quote formats a path for an error.
func quote(name string) string {
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// entryOf returns the path of an entry of a tar file, without a slash at its end; "" is the folder itself.
func entryOf(h *tar.Header) string {
	name := path.Clean(h.Name)
	if name == "." {
		return ""
	}
	return name
}
