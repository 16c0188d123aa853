package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Use is the disk usage of one kind of files.
type Use struct {
	Kind  string `json:"kind"` // database, logs, work, outputs, checkpoints, machines, reserve, other
	Bytes int64  `json:"bytes"`
}

// Measure returns the disk usage of each part of a data folder, and of machines' folders elsewhere.
func Measure(data string, machines ...string) []Use {
	bytes := map[string]int64{}
	parts, _ := os.ReadDir(data) // a missing folder uses nothing
	for _, p := range parts {
		path := filepath.Join(data, p.Name())
		switch kind := kindOf(p.Name()); kind {
		case "blobs":
			all, outputs := Used(path), usedByOutputs(path)
			bytes["outputs"] += outputs
			bytes["checkpoints"] += all - outputs
		default:
			bytes[kind] += Used(path)
		}
	}
	for _, dir := range machines {
		if rel, err := filepath.Rel(data, dir); err != nil || !filepath.IsLocal(rel) {
			bytes["machines"] += Used(dir)
		}
	}
	var list []Use
	for _, kind := range []string{"database", "logs", "work", "outputs", "checkpoints", "machines", ReserveName, "other"} {
		list = append(list, Use{kind, bytes[kind]})
	}
	return list
}

// kindOf returns the kind of the files under a name in a data folder.
func kindOf(name string) string {
	switch {
	case strings.HasPrefix(name, "scrimp.db"), strings.HasPrefix(name, "view.db"):
		return "database"
	case name == "logs", strings.HasSuffix(name, ".log"):
		return "logs"
	case name == "folders", name == "work", name == "uploads":
		return "work"
	case name == "market", name == "engines":
		return "machines"
	case name == "blobs", name == ReserveName:
		return name
	}
	return "other"
}

// usedByOutputs returns the bytes of outputs in a blob folder.
func usedByOutputs(blobs string) (bytes int64) {
	jobs, _ := os.ReadDir(filepath.Join(blobs, "jobs")) // the folder may be missing
	for _, j := range jobs {
		job := filepath.Join(blobs, "jobs", j.Name())
		bytes += Used(filepath.Join(job, "outputs")) + Used(filepath.Join(job, "objects", "kept"))
	}
	return bytes
}

// Block is the smallest allocation for a file or a folder on most file systems, in bytes.
const Block = 4096

// OnDisk returns the disk usage of a file of n bytes: whole blocks, and at least one for its entry.
func OnDisk(n int64) int64 {
	n = max(n, 1)
	return n + (Block-n%Block)%Block
}

// Used is the disk space of all files and folders below a folder; a missing folder uses none.
func Used(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir && e.IsDir() { // it was deleted meanwhile, or belongs to another user
			return nil
		}
		info, err := e.Info()
		switch {
		case err != nil:
		case info.Mode().IsRegular():
			bytes += OnDisk(info.Size())
		default:
			bytes += Block
		}
		return nil
	})
	return bytes
}
