//go:build !linux

package condition

import (
	"io/fs"
	"time"
)

// changed returns when the content of a file was written.
func changed(stat fs.FileInfo) time.Time { return stat.ModTime().UTC() }
