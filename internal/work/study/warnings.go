package study

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Program is how a job starts its program, and how scrimp reads its progress.
type Program struct {
	Command string   // for a shell
	Args    []string // without a shell, instead of Command
	Pattern string   // of a line of output with progress; empty: none
	File    string   // of JSON lines with progress; empty: none
}

// Groups of a pattern that a fidelity counts.
var fidelityGroups = map[string][]string{
	Epoch: {"epoch", "current_epoch", "currentEpoch"},
	Step:  {"step", "current_step", "currentStep", "global_step"},
}

// Warnings returns what probably keeps the search from its values: a pattern without the metric or the fidelity, output
// that the pattern does not see, and parameters that the program may never see.
func (s *Spec) Warnings(p Program) []string {
	return slices.Concat(s.unmatched(p), unseen(p), s.unread(p))
}

// unmatched warns of a pattern without a group for the metric, or for the fidelity.
func (s *Spec) unmatched(p Program) (list []string) {
	re, err := regexp.Compile(p.Pattern)
	if p.Pattern == "" || p.File != "" || err != nil { // a file may have the others
		return nil
	}
	missing := func(groups []string, then string) {
		for _, g := range groups {
			if re.SubexpIndex(g) >= 0 {
				return
			}
		}
		list = append(list, fmt.Sprintf("progress.pattern has no group (?P<%s>…): unless the program reports %[1]s through "+
			"the progress file or the Python helper, %s", groups[0], then))
	}
	missing([]string{s.Metric}, "no trial has a value")
	if groups := fidelityGroups[s.Fidelity.Name]; groups != nil {
		missing(groups, "scrimp does not know how far a trial is trained")
	}
	return list
}

// variables matches the names of variables with parameters in a command.
var variables = regexp.MustCompile(`\bSCRIMP_PARAM(S\b|_[A-Za-z0-9_]*)`)

// unread warns of variables that no parameter has, and of parameters that the program may never see: it gets flags
// where no program reads them, or its command names other parameters alone.
func (s *Spec) unread(p Program) (list []string) {
	text := p.Command
	if len(p.Args) > 0 {
		text = strings.Join(p.Args, " ")
	}
	names := variables.FindAllString(text, -1)
	for i, name := range names {
		if !s.sets(name) && !slices.Contains(names[:i], name) {
			list = append(list, fmt.Sprintf("the command names %s, and no parameter has this variable: it is empty", name))
		}
	}
	for _, v := range s.Values(make([]string, len(s.Params)), false)[len(s.Params):] {
		if strings.Contains(text, "${"+v.Name+"}") {
			list = append(list, fmt.Sprintf("the command names ${%s}, which only the proxy sets: a full training leaves it "+
				"empty; write it as a parameter with the value of a full training", v.Name))
		}
	}
	var absent []string
	for _, v := range s.Values(make([]string, len(s.Params)), false) {
		if !strings.Contains(text, "${"+v.Name+"}") && !slices.Contains(names, "SCRIMP_PARAM_"+envName(v.Name)) {
			absent = append(absent, v.Name)
		}
	}
	if len(absent) == 0 || passesAll(text, names) {
		return list
	}
	if !s.appends(p) {
		return append(list, fmt.Sprintf("the command does not name %s: the program gets it only in its environment "+
			"(SCRIMP_PARAM_%s); unless it reads that, add ${%s} or ${args} to the command",
			strings.Join(absent, ", "), envName(absent[0]), absent[0]))
	}
	if end := lostEnd(p); end != "" {
		list = append(list, fmt.Sprintf("the flags of the parameters come after %.40q at the end of the command, where "+
			"no training program reads them: write ${args} after the program's name", end))
	}
	return list
}

// sets reports whether a trial has the variable; SCRIMP_PARAM_ stands for all with this prefix.
func (s *Spec) sets(name string) bool {
	return name == "SCRIMP_PARAMS" || name == "SCRIMP_PARAM_" ||
		slices.ContainsFunc(s.Values(make([]string, len(s.Params)), false),
			func(v Value) bool { return name == "SCRIMP_PARAM_"+envName(v.Name) })
}

// passesAll reports whether a command names something that has all parameters.
func passesAll(text string, names []string) bool {
	for _, mark := range []string{"${args}", "${args_no_hyphens}", "${args_json}"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return slices.Contains(names, "SCRIMP_PARAMS") || slices.Contains(names, "SCRIMP_PARAM_")
}

// appends reports whether Command adds the parameters as flags at the end.
func (s *Spec) appends(p Program) bool {
	texts := make([]string, len(s.Params))
	command, args := s.Values(texts, true).Command(p.Command, p.Args)
	if len(p.Args) > 0 {
		return len(args) > len(p.Args)
	}
	return strings.HasPrefix(command, strings.TrimRight(p.Command, " \t\r\n")+" ")
}

// Programs and words at the end of a command that train nothing.
var (
	filters = []string{"tee", "cat", "grep", "sed", "awk", "head", "tail", "tr", "cut", "ts", "logger"}
	helpers = []string{"echo", "printf", "true", "exit", "cp", "mv", "rm", "ls", "touch", "sync", "sleep", "wait", "date"}
	closers = []string{"done", "fi", "esac", "}"}
	shells  = []string{"sh", "bash", "dash", "zsh", "/bin/sh", "/bin/bash"}
)

// lostEnd returns the end of a shell command if flags after it reach no program that trains: a comment, the end of a
// loop, of brackets or of a here-document, a separator, the script of another shell, a filter behind a pipe, or a
// program such as echo. It is empty for any other end.
func lostEnd(p Program) string {
	if len(p.Args) > 0 {
		return ""
	}
	s := scan(p.Command)
	if s.end != "" || len(s.commands) == 0 {
		return s.end
	}
	last := &s.commands[len(s.commands)-1]
	switch name := last.program(); {
	case slices.Contains(closers, last.words[0]):
		return last.words[0]
	case slices.Contains(filters, name) && last.piped:
		return "| " + name
	case len(s.commands) > 1 && (slices.Contains(filters, name) || slices.Contains(helpers, name)):
		return name
	case slices.Contains(shells, name) && slices.Contains(last.words, "-c") && !positional(last.words):
		return name + " -c"
	}
	return ""
}

// positional reports whether a word names the arguments of a script.
func positional(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		i := strings.IndexByte(w, '$')
		return i >= 0 && strings.ContainsAny(w[i:], "@*01")
	})
}

// unseen warns of a program whose output goes to a file, while scrimp looks for the metric in the output.
func unseen(p Program) []string {
	if p.Pattern == "" || p.File != "" || len(p.Args) > 0 {
		return nil
	}
	away := ""
	for _, c := range scan(p.Command).commands {
		switch name := c.program(); {
		case slices.Contains([]string{"tail", "cat", "tee"}, name): // it prints the file
			return nil
		case c.away && !slices.Contains(filters, name) && !slices.Contains(helpers, name):
			away = name
		}
	}
	if away == "" {
		return nil
	}
	return []string{fmt.Sprintf("the output of %.40q goes to a file, and progress.pattern reads the output of the "+
		"command: write | tee FILE instead of > FILE", away)}
}
