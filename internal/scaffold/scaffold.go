// Package scaffold writes a first job file by looking at a folder.
package scaffold

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"scrimp/internal/spec"
)

// mains are programs by name, the likeliest first.
var mains = []string{"train.py", "main.py", "run.py", "finetune.py", "train.sh", "run.sh"}

// saving finds the folder that a script writes checkpoints to.
var saving = regexp.MustCompile(`(?:--?(?:output[_-]dir|checkpoint[_-]?dir|save[_-]dir|ckpt[_-]dir)[ ="',]+(?:default=)?["']?|(?:output_dir|checkpoint_dir|save_dir|default_root_dir)\s*=\s*["'])([A-Za-z0-9_./-]+)`)

// Look returns the text of a job file for the folder fsys, called name. What it
// guessed stands in the comments.
func Look(fsys fs.FS, name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by scrimp init from what it found here. Lines marked guess are worth a look.\n# All fields: docs/job-file.md, or scrimp schema for your editor.\nname: %s\n", spec.Label(name))
	script := program(fsys)
	if setup := setup(fsys); setup != "" {
		fmt.Fprintf(&b, "setup: %s  # guess: run once on each machine\n", setup)
	}
	switch {
	case strings.HasSuffix(script, ".py"):
		fmt.Fprintf(&b, "command: python3 %s  # guess\n", script)
	case strings.HasSuffix(script, ".sh"):
		fmt.Fprintf(&b, "command: sh %s  # guess\n", script)
	case exists(fsys, "go.mod"):
		fmt.Fprintf(&b, "command: go run .  # guess\n")
	default:
		fmt.Fprintf(&b, "command: echo replace this with your program  # nothing to run was found\n")
	}
	fmt.Fprintf(&b, "outputs: [out]  # guess: folders that are kept after the machine is gone\ncheckpoint:\n  dir: %s  # guess: the program saves here and continues from here after an interruption\n", checkpoints(fsys, script))
	fmt.Fprint(&b, `# How the program shows its progress, where it prints lines such as "step 120/6000 loss 2.31":
# progress:
#   pattern: 'step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
# work: {steps: 6000, time: 2h}  # lets scrimp plan estimate cost and finish
# deadline: in 12h
# budget: $5.00
`)
	return b.Bytes()
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// program is the likeliest script, or "".
func program(fsys fs.FS) string {
	for _, name := range mains {
		if exists(fsys, name) {
			return name
		}
	}
	scripts, _ := fs.Glob(fsys, "*.py") // the pattern is fine
	slices.Sort(scripts)
	for _, name := range scripts {
		if text, err := fs.ReadFile(fsys, name); err == nil && bytes.Contains(text, []byte("__main__")) {
			return name
		}
	}
	return ""
}

func setup(fsys fs.FS) string {
	switch {
	case exists(fsys, "requirements.txt"):
		return "python3 -m pip install -r requirements.txt"
	case exists(fsys, "pyproject.toml"):
		return "python3 -m pip install ."
	}
	return ""
}

// checkpoints is the folder that the script names, else one that is there, else a new one.
func checkpoints(fsys fs.FS, script string) string {
	if text, err := fs.ReadFile(fsys, script); script != "" && err == nil {
		if found := saving.FindSubmatch(text); found != nil {
			dir := strings.Trim(strings.TrimPrefix(string(found[1]), "./"), "/")
			if dir != "" && !strings.HasPrefix(dir, "..") && !strings.HasPrefix(string(found[1]), "/") {
				return dir
			}
		}
	}
	for _, dir := range []string{"checkpoints", "ckpt", "runs"} {
		if exists(fsys, dir) {
			return dir
		}
	}
	return "checkpoints"
}
