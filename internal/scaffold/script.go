package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// script is a program's text and what its command line takes.
type script struct {
	folder
	file    string // "" where there is no script
	text    string // with the modules beside it that it imports
	options []option
}

// option is an option of the command line.
type option struct {
	name     string // --output_dir
	value    string // default, "" where it has none
	required bool
}

var localImport = regexp.MustCompile(`(?m)^\s*(?:from|import)\s+\.?(\w+)`)

// script reads a program and the modules in its folder that it imports.
func (f folder) script(file string) script {
	s := script{folder: f, file: file, text: f.read(file)}
	if !strings.HasSuffix(file, ".py") {
		return s
	}
	s.options = options(s.text)
	own := s.text
	for _, m := range localImport.FindAllStringSubmatch(own, -1) {
		if name := path.Join(path.Dir(file), m[1]+".py"); name != file && f.has(name) {
			s.text += "\n" + f.read(name)
		}
	}
	return s
}

func (s script) imports(name string) bool {
	return regexp.MustCompile(`(?m)^\s*(?:import|from)\s+` + name + `\b`).MatchString(s.text)
}

// trainer reports whether it uses the Trainer of Hugging Face.
func (s script) trainer() bool {
	return s.imports("transformers") && regexp.MustCompile(`\w*Trainer\(`).MatchString(s.text) || s.imports("trl")
}

// options reads the options that argparse or click are told of.
func options(text string) []option {
	var list []option
	for _, call := range calls(text, "add_argument", "option") {
		var o option
		for _, arg := range call.args {
			switch {
			case strings.HasPrefix(arg, `"-`) || strings.HasPrefix(arg, `'-`):
				if name := strings.Trim(arg, `"'`); strings.HasPrefix(name, "--") || o.name == "" {
					o.name = name
				}
			case strings.HasPrefix(arg, "default="):
				o.value = strings.Trim(strings.TrimSpace(arg[len("default="):]), `"'`)
			case strings.ReplaceAll(arg, " ", "") == "required=True":
				o.required = true
			}
		}
		if o.name != "" {
			list = append(list, o)
		}
	}
	return list
}

// missing says which options the command must be given and is not.
func (s script) missing(command string) (notes []string) {
	var names []string
	for _, o := range s.options {
		if o.required && !strings.Contains(command, o.name) {
			names = append(names, o.name)
		}
	}
	if len(names) > 0 {
		notes = append(notes, fmt.Sprintf("%s does not start without %s: add it to the command.", s.file,
			strings.Join(names, ", ")))
	}
	return notes
}

// documented is the line that starts the script in a shell script or README beside it.
func (s script) documented() (line, where string) {
	if s.file == "" || !strings.HasSuffix(s.file, ".py") {
		return "", ""
	}
	start := regexp.MustCompile(
		`(?m)^[\s$>]*((?:uv run |poetry run )?(?:python3?|torchrun|accelerate launch|deepspeed)\b[^\n|;&<>#` + "`" +
			`]*\b` + regexp.QuoteMeta(s.file) + `[^\n|;&<>#` + "`" + `]*)$`)
	for _, name := range []string{"train.sh", "run.sh", "README.md", "readme.md", "README.rst", "README"} {
		for _, m := range start.FindAllStringSubmatch(s.read(name), -1) {
			if line := strings.TrimSpace(m[1]); !strings.HasSuffix(line, `\`) && !strings.Contains(line, "...") &&
				printable(line) && !strings.ContainsAny(line, "[]{}$") {
				return strings.Join(strings.Fields(line), " "), name
			}
		}
	}
	return "", ""
}

// saving are the names of the folder for checkpoints, the surest first.
var saving = regexp.MustCompile(
	`^-*(?:(?:checkpoints?|ckpts?)(?:[_-]?(?:dir|path|folder|root))?|save[_-](?:dir|path|folder|to)|(?:output|out|` +
		`log|logging|work)[_-]?dir|default_root_dir|dirpath|exp_?dir|output_path)$`)

// assigned finds NAME = "text", name: str = "text" and name="text".
var assigned = regexp.MustCompile(
	`(?mi)\b([a-z_][a-z_0-9]*)\s*(?::[^=\n,()]+)?=\s*(?:os\.environ\.get\([^,()]+,\s*)?["']([^"'\n]+)["']`)

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

// checkpoints is the folder that the script saves to, else one that is there, else a new one.
func (s script) checkpoints() (dir, why string) {
	if strings.Contains(s.text, "SCRIMP_CHECKPOINT_DIR") {
		return "checkpoints", s.file + " reads SCRIMP_CHECKPOINT_DIR"
	}
	if found := s.savesTo(); len(found) > 0 {
		slices.SortStableFunc(found, func(a, b place) int { return surer(a.name) - surer(b.name) })
		return found[0].dir, found[0].why
	}
	for _, dir := range []string{"checkpoints", "ckpt", "runs"} {
		if s.hasDir(dir) {
			return dir, "the folder is here"
		}
	}
	for _, o := range s.options {
		if saving.MatchString(strings.ToLower(o.name)) {
			return "checkpoints", fmt.Sprintf("it is new: tell the program with %s checkpoints in the command", o.name)
		}
	}
	return "checkpoints", "it is new: let the program save here, it finds the folder in SCRIMP_CHECKPOINT_DIR"
}

// place is a folder that a script names, and by which name.
type place struct{ name, dir, why string }

// savesTo are the folders to which the script says that it saves.
func (s script) savesTo() []place {
	var found []place
	for _, o := range s.options {
		if d := below(o.value); saving.MatchString(strings.ToLower(o.name)) && o.value != "" && o.value != "None" && d != "" {
			found = append(found, place{o.name, d, fmt.Sprintf("the default of %s in %s", o.name, s.file)})
		}
	}
	for _, m := range assigned.FindAllStringSubmatch(s.text, -1) {
		if strings.HasSuffix(strings.ToLower(m[1]), "path") && !strings.Contains(m[2], "/") { // such as last
			continue
		}
		if d := below(m[2]); saving.MatchString(strings.ToLower(m[1])) && d != "" {
			found = append(found, place{m[1], d, fmt.Sprintf("%s has %s = %q", s.file, m[1], m[2])})
		}
	}
	for _, m := range torchSave.FindAllStringSubmatch(s.text, -1) {
		if d := below(m[1]); d != "" {
			found = append(found, place{"checkpoint", d, s.file + " saves there"})
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

var resuming = regexp.MustCompile(
	`load_state_dict|torch\.load|resume|ckpt_path=|load_checkpoint|restore|newest\(|load_weights|orbax|from_checkpoint`)

func (s script) resumes() bool { return resuming.MatchString(s.text) }

// outputs are the folders that are kept after the machine is gone.
func (s script) outputs(checkpoints string) (list, why string) {
	m := regexp.MustCompile(`["'](outputs?|out|results?)(?:/[^"'\n]*)?["']`).FindStringSubmatch(s.text)
	if m != nil && m[1] != checkpoints {
		return m[1] + ", " + quote(checkpoints),
			fmt.Sprintf("%s names the folder %s; folders that are kept after the machine is gone", s.file, m[1])
	}
	return quote(checkpoints), "what it has saved is kept after the machine is gone"
}

// accelerator says whether the program needs one, and why that is thought; an
// empty why is a program that was not seen to use one.
func (s script) accelerator() (must bool, why string) {
	for _, name := range []string{"flash_attn", "bitsandbytes", "deepspeed", "triton", "vllm", "apex",
		"transformer_engine", "unsloth", "cupy"} {
		if s.imports(name) {
			return true, fmt.Sprintf("%s imports %s, which needs an accelerator", s.file, name)
		}
	}
	asks := regexp.MustCompile(`is_available\(\)|device_count\(\)|["']auto["']`).MatchString(s.text)
	uses := regexp.MustCompile(
		`\.cuda\(|["']cuda(?::\d+)?["']|nproc_per_node=gpu|accelerator=["']gpu["']|["']nccl["']`).FindString(s.text)
	switch {
	case uses != "" && !asks:
		return true, fmt.Sprintf("%s has %s and does not ask whether there is one", s.file, strings.TrimSuffix(uses, "("))
	case uses != "" || s.imports("torch") || s.imports("transformers") || s.imports("tensorflow") || s.imports("jax") ||
		s.imports("lightning") || s.imports("keras"):
		m := frameworks.FindStringSubmatch(s.text)
		if m == nil {
			return false, s.file + " uses an accelerator where there is one"
		}
		return false, fmt.Sprintf("%s imports %s, which uses an accelerator where there is one", s.file, m[1])
	}
	return false, ""
}

// tracker is the service that the program tells its runs, and the variable of its key.
func (s script) tracker() (name, variable string) {
	for _, t := range [][2]string{{"wandb", "WANDB_API_KEY"}, {"comet_ml", "COMET_API_KEY"},
		{"neptune", "NEPTUNE_API_TOKEN"}} {
		if s.imports(t[0]) {
			return t[0], t[1]
		}
	}
	if strings.Contains(s.text, "HF_TOKEN") {
		return "Hugging Face models", "HF_TOKEN"
	}
	return "", ""
}

var (
	stepOption = regexp.MustCompile(
		`^-*(?:max|num|total|train)?[_-]?(?:train[_-]|training[_-]|total[_-])?(?:steps|iters|iterations)$`)
	epochOption = regexp.MustCompile(`^-*(?:max|num|total|n)?[_-]?(?:train[_-])?epochs?$`)
	count       = regexp.MustCompile(`(?mi)\b([a-z_]+)\s*(?::\s*\w+\s*)?=\s*(\d[\d_]*)\b`)
)

// work is how many steps there are, in the steps that the program prints.
func (s script) work(p progress) (steps, why string) {
	if p.pattern == "" {
		return "", ""
	}
	name, unit := stepOption, ""
	if p.epochs {
		name, unit = epochOption, "; its steps are epochs"
	}
	for _, o := range s.options {
		if v := strings.ReplaceAll(o.value, "_", ""); name.MatchString(o.name) && v != "" && v != "0" &&
			strings.Trim(v, "0123456789") == "" {
			return v, fmt.Sprintf("the default of %s%s", o.name, unit)
		}
	}
	for _, m := range count.FindAllStringSubmatch(s.text, -1) {
		if v := strings.ReplaceAll(m[2], "_", ""); name.MatchString(strings.ToLower(m[1])) && strings.Trim(v, "0") != "" {
			return v, fmt.Sprintf("%s has %s = %s%s", s.file, m[1], m[2], unit)
		}
	}
	return "", ""
}
