// Package scaffold writes a first job file for a folder: how to start its program, where it saves, how it shows its
// progress. It reads files and never runs them. Each guess states its source.
package scaffold

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"scrimp/internal/job/spec"
)

// Guess is a guessed line of the job file.
type Guess struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// Draft is a first job file.
type Draft struct {
	YAML    []byte
	Guesses []Guess
}

// Scan makes a job file with the given name for the folder fsys.
func Scan(fsys fs.FS, name string) Draft {
	f := folder{fsys}
	d := &draft{}
	p := f.program()
	env := f.environment()
	d.line("# Written by scrimp init from what it found here. Each guess says why: have a look at it.")
	d.line("# All fields: docs/job-file.md, or scrimp schema for your editor.")
	d.line("name: %s", spec.Label(name))
	if env.setup != "" {
		d.guess("setup", quote(env.setup), env.why)
	}
	s := f.script(p.file)
	command, why := p.command(env, s)
	saves := s.checkpoints(command)
	whole, unknown := s.complete(command, saves)
	if whole != command {
		why += "; what it needs besides is added"
	}
	d.guess("command", quote(whole), why)
	if len(unknown) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s does not start without %s: add it to the command.", s.file,
			strings.Join(unknown, ", ")))
	}
	for _, note := range p.notes {
		d.line("# %s", note)
	}
	d.machine(s)
	d.saves(s, saves)
	d.shows(s, whole)
	d.line("")
	d.line("# What scrimp holds for you:")
	d.line("# deadline: in 12h")
	d.line("# budget: $5.00")
	return Draft{[]byte(strings.Join(d.lines, "\n") + "\n"), d.guesses}
}

// draft collects the lines of a job file and its guesses.
type draft struct {
	lines   []string
	guesses []Guess
}

func (d *draft) line(format string, args ...any) {
	d.lines = append(d.lines, strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' ' // text quoted from a script may contain anything
	}, fmt.Sprintf(format, args...)))
}

// printable reports whether s has only printable characters.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// guess writes a guessed field below its reason. A field such as checkpoint.dir goes below its parent, which the caller
// has written.
func (d *draft) guess(field, value, why string) {
	indent, key := "", field
	if i := strings.LastIndexByte(field, '.'); i >= 0 {
		indent, key = "  ", field[i+1:]
	}
	d.line("%s# guess: %s", indent, why)
	d.line("%s%s: %s", indent, key, value)
	d.guesses = append(d.guesses, Guess{field, unquote(value), why})
}

// machine writes the requirements on the machine.
func (d *draft) machine(s script) {
	if s.file == "" {
		return
	}
	must, why := s.accelerator()
	switch {
	case why == "":
	case must:
		d.line("resources:")
		d.guess("resources.accelerator", "L4:1", why+"; L4 is the least that most such programs run on, and a "+
			"market that sells none refuses the job")
	default:
		d.line("# %s; to ask for one:", why)
		d.line("# resources: {accelerator: L4:1}")
	}
	if tracker, variable := s.tracker(); tracker != "" {
		d.line("# %s imports %s: export %s and uncomment this, and its value never stands in a file or a log.", s.file,
			tracker, variable)
		d.line("# secrets: [%s]", variable)
	}
}

// saves writes the folders of checkpoints and outputs.
func (d *draft) saves(s script, to place) {
	dir, why := to.dir, to.why
	outputs, whyOutputs := s.outputs(dir)
	d.guess("outputs", "["+outputs+"]", whyOutputs)
	d.line("checkpoint:")
	d.guess("checkpoint.dir", quote(dir), why)
	if s.file != "" && !s.resumes() {
		d.line("  # Nothing in %s was seen to read a checkpoint. It must go on from the newest one in this folder", s.file)
		d.line("  # when it starts, or every interruption begins it again: docs/programs.md says how.")
	}
	if s.trainer() && !strings.Contains(s.text, "enable_jit_checkpoint") {
		d.line("# The Hugging Face Trainer saves on SIGTERM only with enable_jit_checkpoint=True, and waits 3 s " +
			"before it does:")
		d.line("# give it, and let grace be 3 s longer than a step and a save take.")
		d.line("# grace: 90s")
	}
}

// shows writes the progress pattern and the amount of work.
func (d *draft) shows(s script, command string) {
	p := s.progress()
	if p.pattern == "" {
		d.line("# How the program shows its progress, where it prints lines such as \"step 120/6000 loss 2.31\":")
		d.line("# progress:")
		d.line(`#   pattern: 'step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'`)
		if p.why != "" {
			d.line("# %s", p.why)
		}
	} else {
		d.line("progress:")
		d.guess("progress.pattern", single(p.pattern), p.why)
		if p.saved != "" {
			d.guess("progress.saved", single(p.saved), "it prints so when a save is complete")
		}
	}
	if steps, why := s.work(p, command); steps != "" {
		d.line("work:")
		d.guess("work.steps", steps, why)
		d.line("  # time: 2h  # how long all of it takes on one machine: scrimp plan then says cost and finish")
	} else {
		d.line("# work: {steps: 6000, time: 2h}  # how much there is to do: scrimp plan then says cost and finish")
	}
}

// quote formats a value for YAML, quoted if necessary.
func quote(s string) string {
	plain := s != "" && !strings.ContainsAny(s[:1], " -?:,[]{}#&*!|>'\"%@`") && !strings.Contains(s, ": ") &&
		!strings.Contains(s, " #") &&
		!strings.HasSuffix(s, ":") && !strings.HasSuffix(s, " ") && strings.Trim(s, "0123456789.") != ""
	if plain {
		return s
	}
	return single(s)
}

func single(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// unquote reverses quote.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}
