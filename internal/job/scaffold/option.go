package scaffold

import (
	"regexp"
	"strings"

	"scrimp/internal/job/scaffold/pycall"
)

// option is an option or a positional argument of the command line.
type option struct {
	name       string // --output_dir; a positional argument has no dashes
	value      string // default, or the leading folder of it; empty if there is none or it is unknown
	required   bool
	positional bool
	loads      bool // its help text says that something is read from there
}

// words returns the option with a value as words of a command.
func (o option) words(value string) string {
	if o.positional {
		return value
	}
	return o.name + " " + value
}

// options returns the options declared with argparse or click, and those of HfArgumentParser's dataclasses.
func (v values) options() []option {
	var list []option
	for _, call := range pycall.Calls(v.text, "add_argument", "option", "argument") {
		if o := v.option(call); o.name != "" {
			list = append(list, o)
		}
	}
	return append(list, v.dataclasses()...)
}

var (
	comments = regexp.MustCompile(`^(?:#[^\n]*\n\s*)+`)
	keyword  = regexp.MustCompile(`^(\w+)\s*=\s*([^=].*)$`)
	loading  = regexp.MustCompile(`(?i)\b(?:resume|load|restore|pre-?trained|start from|initiali[sz]e)`)
	optional = regexp.MustCompile(`^["'][?*]["']$`)
)

func (v values) option(c pycall.Call) (o option) {
	var fallback bool // the option is not required
	for _, arg := range c.Args {
		arg = comments.ReplaceAllString(arg, "")
		m := keyword.FindStringSubmatch(strings.ReplaceAll(arg, "\n", " "))
		switch {
		case m == nil:
			if text, whole := v.of(arg); whole && pycall.Prefix.MatchString(arg) {
				o.called(text)
			}
		case m[1] == "default":
			o.value, _ = v.of(m[2])
			fallback = true
		case m[1] == "required":
			o.required = m[2] == "True"
		case m[1] == "nargs":
			fallback = fallback || optional.MatchString(m[2])
		case m[1] == "help":
			o.loads = loading.MatchString(m[2])
		}
	}
	o.positional = o.name != "" && !strings.HasPrefix(o.name, "-")
	if c.Name == "option" && o.positional { // click options have no such names
		return option{}
	}
	if o.positional {
		o.required = !fallback
	}
	return o
}

// called adds a name. The long name wins, and among several the one for a folder.
func (o *option) called(name string) {
	name, _, _ = strings.Cut(name, "/") // --save/--no-save of click
	long := strings.HasPrefix(name, "--")
	switch {
	case o.name == "" || long && !strings.HasPrefix(o.name, "--"):
		o.name = name
	case long && saving.MatchString(name) && !saving.MatchString(o.name):
		o.name = name
	}
}

var (
	hfParser    = regexp.MustCompile(`\bHfArgumentParser\(\s*\(?([\w\s,.]+)`)
	docs        = regexp.MustCompile(`(?s)""".*?"""`)
	member      = regexp.MustCompile(`(?m)^ {4}(\w+)\s*:\s*[^=\n]+(?:=\s*)?`)
	trainerArgs = regexp.MustCompile(`(?:TrainingArguments|(?:SFT|DPO|PPO|GRPO|Reward|KTO|ORPO)Config)$`)
)

// dataclasses returns the options of the dataclasses given to HfArgumentParser. The Trainer's need a folder.
func (v values) dataclasses() (list []option) {
	m := hfParser.FindStringSubmatch(v.text)
	if m == nil {
		return nil
	}
	folder := option{}
	for class := range strings.SplitSeq(m[1], ",") {
		class = strings.TrimSpace(class)
		form := `(?m)^class ` + regexp.QuoteMeta(class) + `\s*(?:\(([^)]*)\))?:\s*\n((?:[ \t].*\n|\s*\n)*)`
		own := regexp.MustCompile(form).FindStringSubmatch(v.text + "\n")
		if own != nil {
			list = append(list, v.members(docs.ReplaceAllString(own[2], ""))...)
		}
		if trainerArgs.MatchString(class) || own != nil && trainerArgs.MatchString(strings.TrimSpace(own[1])) {
			folder = option{name: "--output_dir", required: true}
		}
	}
	for _, o := range list {
		if o.name == folder.name {
			return list
		}
	}
	if folder.name != "" {
		list = append(list, folder)
	}
	return list
}

// members returns the fields of a dataclass; fields without a default are required.
func (v values) members(body string) (list []option) {
	for _, at := range member.FindAllStringSubmatchIndex(body, -1) {
		o := option{name: "--" + body[at[2]:at[3]]}
		rest := body[at[1]:]
		given, _, _ := strings.Cut(rest, "\n")
		switch {
		case !strings.Contains(body[at[0]:at[1]], "="):
			o.required = true
		case strings.HasPrefix(rest, "field("):
			args, _, _ := pycall.Arguments(rest, len("field("))
			o.required = true
			for _, arg := range args {
				m := keyword.FindStringSubmatch(strings.ReplaceAll(comments.ReplaceAllString(arg, ""), "\n", " "))
				switch {
				case m == nil:
				case m[1] == "default" || m[1] == "default_factory":
					o.value, _ = v.of(m[2])
					o.required = false
				case m[1] == "metadata":
					o.loads = loading.MatchString(m[2])
				}
			}
		default:
			o.value, _ = v.of(given)
		}
		list = append(list, o)
	}
	return list
}
