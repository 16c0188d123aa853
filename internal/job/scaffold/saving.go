package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// saving are the names of the folder for checkpoints, the surest first.
var saving = regexp.MustCompile(
	`^-*(?:(?:checkpoints?|ckpts?)(?:[_-]?(?:dir|path|folder|root))?|save[_-]?(?:dir|path|folder|to)|(?:output|out|` +
		`log|logging|work|model|results?)[_-]?(?:dir|folder)|default_root_dir|dirpath|exp_?dir|output_path)$`)

// folders are those of them that stand for a folder, and never for a file to read.
var folders = regexp.MustCompile(
	`^-*(?:(?:checkpoints?|ckpts?)[_-]?(?:dir|folder|root)|save[_-]?(?:dir|folder|to)|(?:output|out|work|results?)[_-]?` +
		`(?:dir|folder)|default_root_dir|exp_?dir|output_path)$`)

// assigned finds NAME = "text", name: str = "text" and name="text".
var assigned = regexp.MustCompile(
	`(?mi)\b([a-z_][a-z_0-9]*)\s*(?::[^=\n,()]+)?=\s*(?:os\.environ\.get\([^,()]+,\s*)?["']([^"'\n]+)["']`)

// computed finds NAME = and what follows, where that is no plain text.
var computed = regexp.MustCompile(
	`(?mi)\b([a-z_][a-z_0-9]*)\s*=\s*((?:f["']|Path\(|pathlib\.Path\(|os\.path\.join\()[^\n#]*)`)

var torchSave = regexp.MustCompile(
	`(?:torch\.save|\.save_pretrained|\.save_checkpoint|\.save_weights|joblib\.dump)\([^"'\n]*f?["']([^"'{}\n]*/)`)

// below is a folder below the work folder as it stands in a job file, or "".
func below(dir string) string {
	if strings.ContainsAny(dir, "{}%$*\\ :,[]#'\"") || !printable(dir) || strings.HasPrefix(dir, "/") ||
		strings.HasPrefix(dir, "~") {
		return ""
	}
	dir = path.Clean(dir)
	if dir == "." || dir == ".." || strings.HasPrefix(dir, "../") {
		return ""
	}
	if ext := path.Ext(dir); ext != "" && len(ext) <= 6 && ext != dir { // a file
		return below(path.Dir(dir))
	}
	return dir
}

// place is a folder that a script saves to, by which name, and why.
type place struct {
	name, dir, why string
	flag           *option // the program saves there only where the command says so; nil: it does so by itself
}

// checkpoints is the folder that the script saves to when it is started with the command, else one that is there,
// else a new one.
func (s script) checkpoints(command string) place {
	if strings.Contains(s.text, "SCRIMP_CHECKPOINT_DIR") {
		return place{dir: "checkpoints", why: s.file + " reads SCRIMP_CHECKPOINT_DIR"}
	}
	found := append(s.told(command), s.savesTo(command)...)
	found = append(found, s.mustBeTold(command)...)
	if len(found) > 0 {
		slices.SortStableFunc(found, func(a, b place) int { return surer(a.name) - surer(b.name) })
		return found[0]
	}
	for _, dir := range []string{"checkpoints", "ckpt", "runs"} {
		if s.hasDir(dir) {
			return place{dir: dir, why: "the folder is here"}
		}
	}
	return place{dir: "checkpoints", why: "it is new: let the program save here, it finds the folder in " +
		"SCRIMP_CHECKPOINT_DIR"}
}

// given is what the command says behind a flag.
func given(command, flag string) (value string, ok bool) {
	words := strings.Fields(command)
	for i, w := range words {
		if rest, is := strings.CutPrefix(w, flag+"="); is {
			return strings.Trim(rest, `"'`), true
		}
		if w == flag {
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
				value = strings.Trim(words[i+1], `"'`)
			}
			return value, true
		}
	}
	return "", false
}

// told are the folders that the command itself names.
func (s script) told(command string) (found []place) {
	for w := range strings.FieldsSeq(command) {
		name, _, _ := strings.Cut(w, "=")
		if !strings.HasPrefix(name, "-") || !saving.MatchString(strings.ToLower(name)) {
			continue
		}
		value, _ := given(command, name)
		if d := below(value); d != "" {
			found = append(found, place{name, d, "the command says " + name + " " + value, nil})
		} else if folders.MatchString(strings.ToLower(name)) { // out of what is kept
			found = append(found, place{name, "checkpoints", "it is new, and " + name + " leads there", &option{name: name}})
		}
	}
	return found
}

// mustBeTold are the options for a folder that lead nowhere by themselves, or out of the work folder.
func (s script) mustBeTold(command string) (found []place) {
	for _, o := range s.options {
		if _, said := given(command, o.name); said || below(o.value) != "" || o.loads ||
			!folders.MatchString(strings.ToLower(o.name)) || o.positional && !o.required {
			continue
		}
		found = append(found, place{o.name, "checkpoints", "it is new, and " + o.name + " in the command leads there", &o})
	}
	return found
}

// savesTo are the folders to which the script says that it saves, where the command says nothing else.
func (s script) savesTo(command string) []place {
	var found []place
	for _, o := range s.options {
		_, said := given(command, o.name)
		if d := below(o.value); !said && !o.loads && isSaving(o.name) && d != "" {
			found = append(found, place{o.name, d, fmt.Sprintf("the default of %s in %s", o.name, s.file), nil})
		}
	}
	return append(found, s.assigns()...)
}

// isSaving reports whether a name speaks of saving.
func isSaving(name string) bool { return saving.MatchString(strings.ToLower(name)) }

// assigns are the folders that the script itself names: in its variables, and in calls of torch.save.
func (s script) assigns() (found []place) {
	for _, m := range assigned.FindAllStringSubmatch(s.text, -1) {
		if strings.HasSuffix(strings.ToLower(m[1]), "path") && !strings.Contains(m[2], "/") { // such as last
			continue
		}
		if d := below(m[2]); isSaving(m[1]) && d != "" {
			found = append(found, place{m[1], d, fmt.Sprintf("%s has %s = %q", s.file, m[1], m[2]), nil})
		}
	}
	for _, m := range computed.FindAllStringSubmatch(s.text, -1) {
		if !isSaving(m[1]) {
			continue
		}
		text, _ := values{s.text, s.file}.of(strings.TrimRight(m[2], " ,"))
		if d := below(text); d != "" {
			found = append(found, place{m[1], d, fmt.Sprintf("%s has %s = %s", s.file, m[1], strings.TrimSpace(m[2])), nil})
		}
	}
	for _, m := range torchSave.FindAllStringSubmatch(s.text, -1) {
		if d := below(m[1]); d != "" {
			found = append(found, place{"checkpoint", d, s.file + " saves there", nil})
		}
	}
	return found
}

// surer orders names of folders: one for checkpoints, to save, for all output, for logs.
func surer(name string) int {
	for i, word := range []string{"ck", "check", "save", "default_root", "dirpath", "out"} {
		if strings.Contains(strings.ToLower(name), word) {
			return i
		}
	}
	return 9
}

// complete adds to a command what the program needs: the flag that leads it to the folder that it saves to, and
// what is required where the folder shows a value for it. unknown are those that stay without one.
func (s script) complete(command string, saves place) (whole string, unknown []string) {
	var flags []string
	add := func(o option, value string) {
		switch {
		case o.positional:
			command += " " + value
		default:
			flags = append(flags, o.words(value))
		}
	}
	order := true // arguments by their place are known so far
	for _, o := range s.options {
		_, said := given(command, o.name)
		value := ""
		switch {
		case saves.flag != nil && o.name == saves.flag.name, folders.MatchString(strings.ToLower(o.name)):
			value = s.fileIn(saves.dir, o)
		default:
			value = s.shown(o)
		}
		switch {
		case said || !o.required && (saves.flag == nil || o.name != saves.flag.name):
		case value == "" || o.positional && !order:
			order = order && !o.positional
			unknown = append(unknown, o.name)
		default:
			add(o, value)
		}
	}
	if saves.flag != nil {
		if _, said := given(command, saves.flag.name); said { // with a folder that is not kept
			command = replaced(command, saves.flag.name, saves.dir)
		}
	}
	return strings.Join(append([]string{command}, flags...), " "), unknown
}

// replaced is the command with another value behind a flag.
func replaced(command, flag, value string) string {
	form := regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(flag) + `(?:=\S*|\s+[^\s-]\S*)?(\s|$)`)
	return form.ReplaceAllString(command, "${1}"+flag+" "+value+"${2}")
}

// fileIn is the folder, or a file in it where the program writes to the option's value itself.
func (s script) fileIn(dir string, o option) string {
	field := strings.ReplaceAll(strings.TrimLeft(o.name, "-"), "-", "_")
	writes := regexp.MustCompile(`(?:torch\.save|joblib\.dump)\([^\n]*\b` + regexp.QuoteMeta(field) + `\s*\)`)
	if writes.MatchString(s.text) {
		return dir + "/model.pt"
	}
	return dir
}

var ofPath = regexp.MustCompile(`[_-](?:dir|path|folder|root|file)$`)

// shown is what a required option is given by a folder or file of its name, "" where there is none.
func (s script) shown(o option) string {
	stem := strings.ToLower(ofPath.ReplaceAllString(strings.TrimLeft(o.name, "-"), ""))
	if stem == "" || !name.MatchString(stem) {
		return ""
	}
	if s.hasDir(stem) {
		return stem
	}
	return s.first(stem+".yaml", stem+".yml", stem+".json", stem+".toml", stem+".csv", stem+".txt")
}
