package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/server"
)

// kept are the flags of scrimp serve that a server which a command starts in the folder takes over: those that decide
// about jobs and files, and none about who reaches the server.
type kept struct {
	Running       int           `json:"running"`
	PreemptAfter  time.Duration `json:"preempt_after_ns"`
	Retain        time.Duration `json:"retain_ns"`
	RetainOutputs time.Duration `json:"retain_outputs_ns"`
}

// Keep writes the settings of the newest scrimp serve of a folder to a file of it. It logs an error.
func Keep(o *server.Options) {
	path := filepath.Join(o.Dir, server.ServedName)
	b, err := json.Marshal(kept{o.Running, o.PreemptAfter, o.Retain, o.RetainOutputs})
	if err == nil {
		err = os.WriteFile(path+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		o.Log.Warn("a server that a command starts will not have these settings", "error", err)
	}
}

// TakeOver puts the settings of the folder's newest scrimp serve into o. Without any, o stays as it is.
func TakeOver(o *server.Options) error {
	path := filepath.Join(o.Dir, server.ServedName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var v kept
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err == nil && (v.Running < 1 || v.PreemptAfter < time.Second) {
		err = fmt.Errorf("running is %d and preempt_after_ns %d", v.Running, v.PreemptAfter)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w: remove the file, or start scrimp serve", path, err)
	}
	o.Running, o.PreemptAfter, o.Retain, o.RetainOutputs = v.Running, v.PreemptAfter, v.Retain, v.RetainOutputs
	return nil
}
