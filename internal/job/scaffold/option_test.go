package scaffold

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
)

// Python's path expressions are evaluated as far as the script determines them.
func TestValues_EvaluatesPythonPaths(t *testing.T) {
	text := "ROOT = 'out'\nRUN: str = ROOT + '/run'  # of today\nHERE = os.path.dirname(os.path.abspath(__file__))\n" +
		"BASE = Path(__file__).resolve().parent\nLOOP = LOOP\n"
	type known struct {
		text  string
		whole bool
	}
	for expr, want := range map[string]known{
		`"a/b"`: {"a/b", true}, `'a'`: {"a", true}, `r"a"`: {"a", true}, `None`: {}, `12`: {"12", true}, `1e-3`: {"1e-3", true},
		`Path("a")`: {"a", true}, `Path("a") / "b"`: {"a/b", true}, `pathlib.Path("a", "b").absolute()`: {"a/b", true},
		`os.path.join("a", "b", 'c')`: {"a/b/c", true}, `os.path.join(ROOT, "ckpt")`: {"out/ckpt", true},
		`os.path.join("runs", name)`: {"runs", false}, `f"runs/{args.name}"`: {"runs/", false}, `f"{ROOT}/x"`: {"out/x", true},
		`f"{name}/x"`: {}, `"runs/" + stamp()`: {"runs/", false}, `RUN`: {"out/run", true}, `LOOP`: {},
		`os.path.join(HERE, "ckpt")`: {"src/ckpt", true}, `BASE / "ckpt"`: {"src/ckpt", true},
		`BASE.parent / "ckpt"`: {"ckpt", true}, `os.getenv("OUT", "o")`: {"o", true}, `os.environ["OUT"]`: {},
		`str(Path("a"))`: {"a", true}, `os.getcwd()`: {".", true}, `Path.home() / "a"`: {}, `"/mnt" + "/x"`: {"/mnt/x", true},
		`f("a"`: {}, `"a`: {}, `"a" "b"`: {}, `lambda: "x"`: {},
	} {
		got, whole := values{text, "src/train.py"}.of(expr)
		if got != want.text || whole != want.whole {
			t.Errorf("%s is %q, %v, want %q, %v", expr, got, whole, want.text, want.whole)
		}
	}
}

const hfMain = `from transformers import HfArgumentParser, Trainer, TrainingArguments

@dataclass
class ModelArguments:
    """What is trained.

    model_name: it has no default
    """
    model_name_or_path: str = field(
        metadata={"help": "path, or name"},  # on the hub
    )
    revision: Optional[str] = field(default="main")
    use_lora: bool = False

@dataclass
class DataArguments:
    corpus_file: str
    cache_dir: Optional[str] = field(default=None)

def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model, data, args = parser.parse_args_into_dataclasses()
    Trainer(args=args).train(resume_from_checkpoint=True)
`

// The command of init starts the program, and the program saves into the folder of checkpoint.dir.
func TestScan_CommandSavesIntoCheckpointFolder(t *testing.T) {
	for what, c := range map[string]struct {
		code, readme, command, dir string
		besides                    []string // files that are there
		says                       string
	}{
		"a default stays": {code: `p.add_argument("--ckpt-dir", type=str, default="ckpts", help="where")`, dir: "ckpts"},
		"a Path":          {code: `p.add_argument("--out-dir", type=Path, default=Path("runs") / "a")`, dir: "runs/a"},
		"a joined path":   {code: `p.add_argument('--save_dir', default=os.path.join('out', 'ckpt'))`, dir: "out/ckpt"},
		"a constant": {code: "CKPT = Path('weights')\np.add_argument('--checkpoint_dir', default=str(CKPT))",
			dir: "weights"},
		"a name of today":   {code: `p.add_argument("--output_dir", default=f"runs/{time.time()}")`, dir: "runs"},
		"beside the script": {code: `CKPT_DIR = os.path.join(os.path.dirname(__file__), "ckpt")`, dir: "ckpt"},
		"none": {code: `p.add_argument("--checkpoint_dir", default=None)`, command: " --checkpoint_dir checkpoints",
			dir: "checkpoints"},
		"no default": {code: `p.add_argument("--save-dir", type=str)`, command: " --save-dir checkpoints", dir: "checkpoints"},
		"required": {code: `p.add_argument('-o', '--output_dir', required = True, type=str)`,
			command: " --output_dir checkpoints", dir: "checkpoints"},
		"an absolute default": {code: `p.add_argument("--output-dir", default="/mnt/nfs/out")`,
			command: " --output-dir checkpoints", dir: "checkpoints"},
		"the work folder": {code: `p.add_argument("--out_dir", default=".")`, command: " --out_dir checkpoints",
			dir: "checkpoints"},
		"a home": {code: `p.add_argument("--out_dir", default=Path.home() / "x")`, command: " --out_dir checkpoints",
			dir: "checkpoints"},
		"it falls back by itself": {code: "p.add_argument('--ckpt_dir', default=None)\nckpt_dir = args.ckpt_dir or d\n" +
			"if args.ckpt_dir is None:\n    args.ckpt_dir = 'saves'\n", dir: "saves"},
		"the sure one of two": {code: `p.add_argument("--log_dir", default="logs")` + "\n" +
			`p.add_argument("--checkpoint-dir")`, command: " --checkpoint-dir checkpoints", dir: "checkpoints"},
		"a default beside a required one": {code: `p.add_argument("--ckpt-dir", default="ckpt")` + "\n" +
			`p.add_argument("--output_dir", required=True)`, command: " --output_dir ckpt", dir: "ckpt"},
		"what is resumed from is no place to save": {code: `p.add_argument("--checkpoint_dir", default=None, ` +
			`help="resume from this folder")` + "\nout_dir = 'saves'", dir: "saves"},
		"a file to load": {code: `p.add_argument("--checkpoint", default=None)`, dir: "checkpoints"},
		"a file to write": {code: "p.add_argument('--save_to', required=True)\ntorch.save(m.state_dict(), args.save_to)",
			command: " --save_to checkpoints/model.pt", dir: "checkpoints"},
		"by its place": {code: `p.add_argument("data")` + "\n" + `p.add_argument("output_dir")` + "\n" +
			`p.add_argument("note", nargs="?")`, besides: []string{"data/x"}, command: " data checkpoints", dir: "checkpoints"},
		"by its place behind what is unknown": {code: `p.add_argument("corpus")` + "\n" + `p.add_argument("output_dir")`,
			dir: "checkpoints", says: "does not start without corpus, output_dir"},
		"click": {code: "@click.command()\n@click.option('--out-dir', '-o', 'where', required=True, type=click.Path())\n" +
			"@click.option('--save/--no-save', default=True)\ndef main(where): pass", command: " --out-dir checkpoints",
			dir: "checkpoints"},
		"click with a default": {code: "@click.option('-o', '--ckpt-dir', default=os.path.join('a', 'b'), show_default=True)\n" +
			"def main(ckpt_dir): pass", dir: "a/b"},
		"an argument of click": {code: "@click.argument('output_dir', type=click.Path())\ndef main(output_dir): pass",
			command: " checkpoints", dir: "checkpoints"},
		"comments between": {code: "p.add_argument(\n    '--output_dir',\n    # where it saves\n    type=str,\n    default='out',  # here\n)",
			dir: "out"},
		"the trainer": {code: hfMain, besides: []string{"corpus.txt"}, dir: "checkpoints",
			command: " --corpus_file corpus.txt --output_dir checkpoints", says: "does not start without --model_name_or_path"},
		"a trainer of its own": {code: "from trl import SFTConfig\n@dataclass\nclass Args(TrainingArguments):\n" +
			"    output_dir: str = 'saved'\n    lr: float = 1e-3\nHfArgumentParser(Args)", dir: "saved"},
		"the readme says where": {code: `p.add_argument("--ckpt-dir", default="ckpts")`,
			readme: "python3 train.py --ckpt-dir out/run1 --lr 1", command: " --ckpt-dir out/run1 --lr 1", dir: "out/run1"},
		"the readme leads out": {code: `p.add_argument("--ckpt-dir", required=True)`,
			readme: "python3 train.py --ckpt-dir=/mnt/x --lr 1", command: " --ckpt-dir checkpoints --lr 1", dir: "checkpoints"},
		"a longer name in the readme": {code: "p.add_argument('--data', required=True)\np.add_argument('--data_workers')",
			readme: "python3 train.py --data_workers 4", command: " --data_workers 4", dir: "checkpoints",
			says: "does not start without --data:"},
	} {
		files := map[string]string{"train.py": c.code + "\n", "README.md": c.readme}
		for _, name := range c.besides {
			files[name] = "x"
		}
		d := Scan(dir(files), "x")
		j, _, err := spec.Parse(spec.Run, "job.yaml", d.YAML, "x", time.Unix(0, 0))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if want := "exec python3 train.py" + c.command; j.Command != want || j.Checkpoint.Dir != c.dir {
			t.Errorf("%s: %q saves to %q, want %q and %q:\n%s", what, j.Command, j.Checkpoint.Dir, want, c.dir, d.YAML)
		}
		if !strings.Contains(string(d.YAML), c.says) || c.says == "" && strings.Contains(string(d.YAML), "does not start") {
			t.Errorf("%s: want %q in\n%s", what, c.says, d.YAML)
		}
	}
}
