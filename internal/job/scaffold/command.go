package scaffold

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"scrimp/internal/job/spec"
)

// Command fills a command's open fields with what a first job file would guess from the same script: its progress
// lines, its number of steps, and its checkpoint folder. It does not change the command.
func Command(fsys fs.FS, j spec.Job) (spec.Job, []Guess) {
	f, file := folder{fsys}, ""
	for _, arg := range j.Args {
		if at := path.Clean(arg); strings.HasSuffix(at, ".py") && fs.ValidPath(at) && f.has(at) {
			file = at
			break
		}
	}
	if file == "" {
		return j, nil
	}
	s, command := f.script(file), strings.Join(j.Args, " ")
	var list []Guess
	guess := func(field, value, why string) { list = append(list, Guess{Field: field, Value: value, Why: why}) }
	if to := s.checkpoints(command); to.name != "" && to.flag == nil && to.dir != j.Checkpoint.Dir {
		j.Checkpoint.Dir = to.dir
		guess("checkpoint.dir", to.dir, to.why)
	}
	p := s.progress()
	if p.pattern == "" {
		return j, list
	}
	j.Progress.Pattern = p.pattern
	guess("progress.pattern", p.pattern, p.why)
	if p.saved != "" {
		j.Progress.Saved = p.saved
		guess("progress.saved", p.saved, "it prints so when a save is complete")
	}
	if steps, why := s.work(p, command); steps != "" {
		j.Work.Steps, _ = strconv.ParseInt(steps, 10, 64) // digits; unknown if there are too many
		guess("work.steps", steps, why)
	}
	return j, list
}
