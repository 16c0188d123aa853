package scaffold

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// script is a program's text and its command-line options.
type script struct {
	folder
	file    string // empty without a script
	text    string // including the modules that it imports from its folder
	options []option
}

var localImport = regexp.MustCompile(`(?m)^\s*(?:from|import)\s+\.?(\w+)`)

// script reads a program and the modules that it imports from its folder.
func (f folder) script(file string) script {
	s := script{folder: f, file: file, text: f.read(file)}
	if !strings.HasSuffix(file, ".py") {
		return s
	}
	own := s.text
	s.options = values{own, file}.options()
	for _, m := range localImport.FindAllStringSubmatch(own, -1) {
		name := path.Join(path.Dir(file), m[1]+".py")
		if name == file || !f.has(name) {
			continue
		}
		text := f.read(name)
		s.text += "\n" + text
		if !strings.Contains(text, "__main__") { // it is not a program itself
			s.options = append(s.options, values{text, name}.options()...)
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

// documented returns the line that starts the script in a shell script or README of the folder.
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

// searches reports whether it trains the trials of a search itself.
func (s script) searches() bool { return strings.Contains(s.text, "scrimp.search(") }

var resuming = regexp.MustCompile(
	`load_state_dict|torch\.load|resume|ckpt_path=|load_checkpoint|restore|newest\(|load_weights|orbax|from_checkpoint`)

func (s script) resumes() bool { return resuming.MatchString(s.text) }

// outputs returns the folders to keep after the machine is terminated.
func (s script) outputs(checkpoints string) (list, why string) {
	m := regexp.MustCompile(`["'](outputs?|out|results?)(?:/[^"'\n]*)?["']`).FindStringSubmatch(s.text)
	if m != nil && m[1] != checkpoints {
		return m[1] + ", " + quote(checkpoints),
			fmt.Sprintf("%s names the folder %s; folders that are kept after the machine is gone", s.file, m[1])
	}
	return quote(checkpoints), "what it has saved is kept after the machine is gone"
}

// accelerator reports whether the program needs an accelerator, and why. An empty why means that it shows no use of
// one.
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

// tracker returns the program's experiment tracker, and the variable of its key.
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

// work returns the number of steps, in the unit that the program prints.
func (s script) work(p progress, command string) (steps, why string) {
	if p.pattern == "" || s.searches() { // the lines of a search count the epochs of many trials
		return "", ""
	}
	name, unit := stepOption, ""
	if p.epochs {
		name, unit = epochOption, "; its steps are epochs"
	}
	for _, o := range s.options { // what the command says goes first
		if v, is := given(command, o.name); is && name.MatchString(o.name) && isCount(v) {
			return v, fmt.Sprintf("the command says %s %s%s", o.name, v, unit)
		}
	}
	for _, o := range s.options {
		if v := strings.ReplaceAll(o.value, "_", ""); name.MatchString(o.name) && isCount(v) && v != "0" {
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

// isCount reports whether the text is a whole number in digits.
func isCount(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
