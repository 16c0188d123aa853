package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Accelerator memory that is in use after a task, but was not before, belongs to the task.
func TestReleased_FailsWhileAcceleratorIsInUse(t *testing.T) {
	bin := t.TempDir()
	state := filepath.Join(bin, "state")
	script := "#!/bin/sh\ncase $1 in *memory*) echo \"GPU-1, $(cat " + state + ")\"; echo 'GPU-2, [N/A]';; " +
		"*) cat " + state + ".apps 2>/dev/null; true;; esac\n"
	err := errors.Join(os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o700), os.WriteFile(state, []byte("5"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	set := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := Accelerators{Path: filepath.Join(bin, "first")}
	x.Before()
	check := func(what string, released bool) {
		now, err := look(t.Context())
		if err == nil {
			err = x.beyond(now)
		}
		if (err == nil) != released {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("nothing has changed", true)
	set(state, "500")
	check("memory is in use", false)
	again := Accelerators{Path: x.Path}
	if again.Before(); again.First.Memory["GPU-1"] != 5 {
		t.Errorf("a restarted agent takes what a task has for what was there before: %+v", again.First)
	}
	set(state, "40")
	set(state+".apps", "1\n")
	check("another's process, which the system lists", true)
	set(state+".apps", "1\n4194305\n")
	check("a process that the system does not list", false)
	set(state+".apps", "[Insufficient Permissions]\n")
	check("processes that are not told", false)
	set(state, "exit")
	set(filepath.Join(bin, "nvidia-smi"), "#!/bin/sh\nexit 9\n")
	check("a driver that does not answer", false)
}
