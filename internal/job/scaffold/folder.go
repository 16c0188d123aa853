package scaffold

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// mostText bounds the bytes that are read of one file.
const mostText = 1 << 20

// folder is the scanned folder.
type folder struct{ fs.FS }

func (f folder) has(name string) bool {
	st, err := fs.Stat(f, name)
	return err == nil && !st.IsDir()
}

func (f folder) hasDir(name string) bool {
	st, err := fs.Stat(f, name)
	return err == nil && st.IsDir()
}

// read returns the text of a file, or "" if it is unreadable or too long.
func (f folder) read(name string) string {
	st, err := fs.Stat(f, name)
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostText {
		return ""
	}
	b, err := fs.ReadFile(f, name)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "?")
}

// first returns the first existing name, or "".
func (f folder) first(names ...string) string {
	for _, n := range names {
		if f.has(n) {
			return n
		}
	}
	return ""
}

// environment describes how the program's packages get to a machine.
type environment struct {
	setup, why string
	python     string // the command that starts Python within it
	runner     string // the prefix that runs another program within it
}

func (f folder) environment() environment {
	none := environment{python: "python3"}
	pyproject := f.read("pyproject.toml")
	conda := f.first("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
	switch {
	case f.has("uv.lock"):
		return environment{"command -v uv >/dev/null || python3 -m pip install uv; uv sync --frozen", "uv.lock is here",
			"uv run python", "uv run "}
	case f.has("poetry.lock") || strings.Contains(pyproject, "[tool.poetry"):
		why := "pyproject.toml has [tool.poetry]"
		if f.has("poetry.lock") {
			why = "poetry.lock is here"
		}
		return environment{"command -v poetry >/dev/null || python3 -m pip install poetry; poetry install " +
			"--no-interaction", why, "poetry run python", "poetry run "}
	case conda != "":
		name := "scrimp"
		if m := regexp.MustCompile(`(?m)^name:\s*["']?([\w.-]+)`).FindStringSubmatch(f.read(conda)); m != nil {
			name = m[1]
		}
		run := "conda run --no-capture-output -n " + name + " "
		return environment{fmt.Sprintf("conda env update -n %s -f %s", name, conda),
			conda + " is here; conda must be on the machine", run + "python", run}
	case f.has("requirements.txt"):
		none.setup, none.why = "python3 -m pip install -r requirements.txt", "requirements.txt is here"
	case f.has("pyproject.toml"):
		none.setup, none.why = "python3 -m pip install .", "pyproject.toml is here, without the lock of uv or poetry"
	case f.has("setup.py"):
		none.setup, none.why = "python3 -m pip install .", "setup.py is here"
	}
	return none
}

// program is the program that the job would run.
type program struct {
	file  string // empty if none was found
	why   string
	fixed string   // the whole command, if it does not use the file
	notes []string // comments for the job file
}

// mains lists usual program names, likeliest first.
var mains = []string{"train.py", "main.py", "run.py", "finetune.py", "pretrain.py", "fit.py"}

// frameworks matches imports of training packages.
var frameworks = regexp.MustCompile(
	`(?m)^\s*(?:import|from)\s+(torch|lightning|pytorch_lightning|transformers|accelerate|deepspeed|tensorflow|` +
		`keras|jax|flax|sklearn|xgboost|lightgbm|mlx)\b`)

var trains = regexp.MustCompile(`\.backward\(|\.fit\(|\.train\(|value_and_grad|GradientTape`)

// program returns the likeliest program.
func (f folder) program() program {
	var names []string
	for _, pattern := range []string{"*.py", "src/*.py", "scripts/*.py", "*/train.py"} {
		found, _ := fs.Glob(f, pattern) // the patterns are valid
		names = append(names, found...)
	}
	slices.Sort(names)
	var best program
	most := 14 // the minimum score
	for _, name := range slices.Compact(names) {
		if score, why := f.likely(name); score > most {
			most, best = score, program{file: name, why: name + " because " + strings.Join(why, ", ")}
		}
	}
	shell := f.first("train.sh", "run.sh")
	books, _ := fs.Glob(f, "*.ipynb") // the pattern is valid
	switch {
	case best.file != "":
		return best
	case shell != "":
		return program{file: shell, why: shell + " because of its name", fixed: "exec sh " + shell}
	case f.has("go.mod"):
		return program{why: "go.mod is here", fixed: "go run ."}
	case f.has("Cargo.toml"):
		return program{why: "Cargo.toml is here", fixed: "cargo run --release"}
	case regexp.MustCompile(`(?m)^train:`).MatchString(f.read("Makefile")):
		return program{why: "the Makefile has a target train", fixed: "exec make train"}
	case len(books) > 0:
		return f.notebook(books[0])
	}
	return program{why: "nothing to run was found: put your program here", fixed: "echo replace this with your program"}
}

// likely scores how likely a Python file is the program, with the reasons.
func (f folder) likely(name string) (score int, why []string) {
	text, base := f.read(name), path.Base(name)
	if strings.HasPrefix(base, "test_") || base == "setup.py" || base == "conftest.py" {
		return 0, nil
	}
	if i := slices.Index(mains, base); i >= 0 {
		score += 40 - i
		why = append(why, "of its name")
	}
	if strings.Contains(text, "__main__") {
		score += 20
		why = append(why, "it has a __main__")
	}
	if m := frameworks.FindStringSubmatch(text); m != nil {
		score += 10
		why = append(why, "it imports "+m[1])
	}
	if trains.MatchString(text) {
		score += 15
		why = append(why, "it trains")
	}
	if score >= 15 && !strings.Contains(name, "/") {
		score += 5
	}
	return score, why
}

// notebook runs a notebook as a script: Jupyter itself would write nothing until the last cell is done, and would not
// pass on signals.
func (f folder) notebook(name string) program {
	script := strings.TrimSuffix(name, ".ipynb") + ".py"
	p := program{file: name, why: name + " is the notebook here; it is turned into a script, which prints as it goes",
		notes: []string{
			"jupyter nbconvert must be on the machine: setup may install it with python3 -m pip install nbconvert.",
			"Cells run in their order, once, without anybody watching: show nothing, save to the folder below, go on from it.",
		}}
	runner := "python3"
	if regexp.MustCompile(`"(?:%|!)\s*\w`).MatchString(f.read(name)) {
		runner = "ipython"
		p.notes = append(p.notes, "It has lines that begin with % or !: only ipython reads these.")
	}
	p.fixed = fmt.Sprintf("jupyter nbconvert --to script %s && exec %s %s", shellWord(name), runner, shellWord(script))
	return p
}

// shellWord quotes a word for the shell if necessary.
func shellWord(s string) string {
	if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// command returns the command that starts the program: as the folder's own documents do, or else with the launcher that
// its imports need.
func (p program) command(env environment, s script) (command, why string) {
	if p.fixed != "" {
		return p.fixed, p.why
	}
	if said, where := s.documented(); said != "" {
		words := strings.Fields(said)
		switch words[0] {
		case "python", "python3":
			said = env.python + strings.TrimPrefix(said, words[0])
		case "torchrun", "accelerate", "deepspeed":
			said = env.runner + said
		}
		return "exec " + said, where + " starts it so; " + p.why
	}
	file := shellWord(p.file)
	switch {
	case s.imports("deepspeed"):
		return "exec " + env.runner + "deepspeed " + file, p.why + "; DeepSpeed has a launcher of its own"
	case s.imports("accelerate"):
		return "exec " + env.runner + "accelerate launch " + file, p.why + "; Accelerate has a launcher of its own"
	case s.imports("lightning") || s.imports("pytorch_lightning"):
		return "exec " + env.python + " " + file, p.why + "; Lightning starts its own processes"
	case regexp.MustCompile(`init_process_group|LOCAL_RANK|DistributedDataParallel|fully_shard`).MatchString(s.text):
		return "exec " + env.runner + "torchrun --standalone --nproc_per_node=gpu " + file,
			p.why + "; it uses torch.distributed, so torchrun starts a process for each accelerator"
	}
	return "exec " + env.python + " " + file, p.why
}
