package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/server/disk"
)

// diskCheck reports the free disk space and the space that each kind of server data takes.
func diskCheck(data string, room disk.Room, machines ...string) show.Check {
	c := show.Check{Name: "disk", OK: true}
	if _, err := os.Stat(data); err != nil { // the check of the folder reports it
		return c
	}
	var uses []string
	for _, u := range disk.Measure(data, machines...) {
		c.Use = append(c.Use, show.Use{Kind: u.Kind, Bytes: u.Bytes})
		if u.Bytes >= 1<<20 {
			uses = append(uses, fmt.Sprintf("%s %d MiB", u.Kind, u.Bytes>>20))
		}
	}
	if left, ok := room(); ok {
		c.Text = fmt.Sprintf("%d MiB are free", left.Bytes>>20)
		if left.Entries < 16*disk.LogEntries { // few enough entries to show them
			c.Text += fmt.Sprintf(", and room for %d files (inodes)", left.Entries)
		}
		switch {
		case room.Crowded() != nil:
			c.OK, c.Text = false, c.Text+": no job is taken, and output waits on machines: make room, as with scrimp gc"
		case room.Full(0) != nil:
			c.OK, c.Text = false, c.Text+": output and checkpoints wait on machines until there are "+
				fmt.Sprintf("%d MiB and room for %d files: make room, as with scrimp gc", disk.LogReserve>>20,
					disk.LogEntries)
		}
	}
	if len(uses) > 0 {
		c.Text += "; " + data + " has " + strings.Join(uses, ", ")
	}
	return c
}

// machineFolders returns the folders of a data folder's local engines.
func machineFolders(data string) (list []string) {
	settings, _ := engine.Settings(data) // another check reports errors in the settings
	for _, s := range settings {
		if s.Kind == local.Kind {
			list = append(list, local.Machines(data, &s))
		}
	}
	return list
}

// probe is the size of the test write, in bytes: an empty file would fit on a full disk, too.
const probe = 256 << 10

// folderCheck reports whether the data folder is writable.
func (a *app) folderCheck() show.Check {
	path := filepath.Join(a.Data, ".probe")
	err := os.MkdirAll(a.Data, 0o700)
	if err == nil {
		err = os.WriteFile(path, make([]byte, probe), 0o600)
	}
	_ = os.Remove(path)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return show.Check{Name: "data folder", OK: false, Text: a.Data + " cannot be written to: its disk is full. Make " +
			"room on it, as with scrimp gc"}
	case err != nil:
		return show.Check{Name: "data folder", OK: false, Text: err.Error() + ": give another with --data"}
	}
	return show.Check{Name: "data folder", OK: true, Text: a.Data + " can be written to"}
}

// retention reports how long a server keeps the output of jobs.
func retention(v api.Server) show.Check {
	kept := func(seconds float64) string {
		if seconds == 0 {
			return "for ever"
		}
		return fmt.Sprintf("for %d days", int(time.Duration(seconds*float64(time.Second))/(24*time.Hour)))
	}
	return show.Check{Name: "retention", OK: true, Text: "once a job is over its work folder, output and older " +
		"checkpoints are kept " + kept(v.RetainS) + ", its kept outputs and newest checkpoint " + kept(v.RetainOutputsS) +
		"; scrimp gc removes what is older"}
}
