package cli

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

// diskCheck says what of the disk is free, and what each kind of thing takes that the server keeps.
func diskCheck(data string, room disk.Room, machines ...string) show.Check {
	c := show.Check{Name: "disk", OK: true}
	if _, err := os.Stat(data); err != nil { // the check of the folder says so
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
		if left.Entries < 16*disk.LogEntries { // few enough to be read
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

// machineFolders are those of the local engines of a data folder.
func machineFolders(data string) (list []string) {
	settings, _ := engine.Settings(data) // another check says what is wrong with them
	for _, s := range settings {
		if s.Kind == local.Kind {
			list = append(list, local.Machines(data, &s))
		}
	}
	return list
}

// probe writes so much to a folder and removes it: a file without content finds room on a full disk too.
const probe = 256 << 10

// folderCheck says whether the data folder can be written to.
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

// retention says how long a server keeps what jobs have left.
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
