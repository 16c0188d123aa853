package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Use is what a part of what a server keeps takes of the disk.
type Use struct {
	Kind  string `json:"kind"` // database, logs, work, outputs, checkpoints, machines, reserve, other
	Bytes int64  `json:"bytes"`
}

// Measure says what each part of a data folder takes, and the folders of machines that lie elsewhere.
func Measure(data string, machines ...string) []Use {
	bytes := map[string]int64{}
	parts, _ := os.ReadDir(data) // of one that is not there nothing is used
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

// kindOf is what lies under a name in a data folder.
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

// usedByOutputs is how many bytes of a folder of blobs are outputs.
func usedByOutputs(blobs string) (bytes int64) {
	jobs, _ := os.ReadDir(filepath.Join(blobs, "jobs")) // there may be none
	for _, j := range jobs {
		job := filepath.Join(blobs, "jobs", j.Name())
		bytes += Used(filepath.Join(job, "outputs")) + Used(filepath.Join(job, "objects", "kept"))
	}
	return bytes
}

// Block is what a file or a folder takes at least, on most file systems.
const Block = 4096

// OnDisk is what a file of n bytes takes: whole blocks, and one at least for its entry.
func OnDisk(n int64) int64 {
	n = max(n, 1)
	return n + (Block-n%Block)%Block
}

// Used is the disk space of all files and folders below a folder; a missing folder uses none.
func Used(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir && e.IsDir() { // it has just gone, or is another user's
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
