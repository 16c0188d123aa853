package docs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/cli"
	"scrimp/internal/engine"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/sim/protocol"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/port"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
	"scrimp/internal/work/commit"
	"scrimp/internal/work/own"
	"scrimp/internal/work/pipelinefile"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/storage"
	"scrimp/internal/work/studyfile"
)

// Comments above a block say what it is:
//
//	not run: WHY     commands that need something missing; they are only parsed
//	file: NAME       content of a file that commands of the page need
//	exit: 2          exit status of the commands; 0 by default
//	background: URL  the command runs until the page ends; the next one waits until URL answers
//	yaml: market     a market file, engines, study, loop, tco, roi, terms, storage-rules,
//	                 storage-prices, functions, protocol or other; by default a job
//	                 file or a part of one
//
// pages returns the documents whose commands run: those for users. Design notes print commands of this repository.
func pages(t *testing.T) map[string]string {
	list := documents(t)
	for name, text := range list {
		if strings.HasPrefix(name, "docs/design/") || strings.Contains(text, "<!-- Written from the code:") ||
			name == "CHANGELOG.md" || name == "CONTRIBUTING.md" {
			delete(list, name)
		}
	}
	return list
}

// The real parser knows every printed command, every YAML block can be parsed, and a block that does not run says
// why.
func TestDocs_PrintedCommandsParse(t *testing.T) {
	t.Parallel()
	commands, blocks := 0, 0
	for name, text := range pages(t) {
		for _, b := range Blocks(text) {
			if b.Lang == "yaml" {
				blocks++
				readsYAML(t, name, b)
			}
			for _, line := range b.Commands() {
				commands++
				for _, call := range Calls(line) {
					parses(t, fmt.Sprintf("%s:%d", name, b.Line), call)
				}
			}
			if why, not := b.Mark("not run"); not && len(why) < 10 {
				t.Errorf("%s:%d: the mark does not say why it is not run", name, b.Line)
			}
		}
	}
	if commands < 100 || blocks < 10 {
		t.Errorf("%d commands and %d blocks of YAML were found: the documents were not read", commands, blocks)
	}
}

// Every printed command ends with the stated status, except those in blocks that do not run.
func TestDocs_PrintedCommandsRun(t *testing.T) {
	lane.Component(t, "python")
	for _, name := range []string{"python3", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	var ran, done atomic.Int64
	list := pages(t)
	t.Cleanup(func() {
		t.Logf("%d commands ran", ran.Load())
		if int(done.Load()) == len(list) && ran.Load() < 60 { // -run may select pages
			t.Errorf("%d commands ran: the documents were not read", ran.Load())
		}
	})
	for name, text := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *page
			done.Add(1)
			all := Blocks(text)
			for i, b := range all {
				if file, ok := b.Mark("file"); ok {
					p = p.opened(t, name, text)
					p.write(file, strings.Join(b.Lines, "\n")+"\n")
				}
				commands := b.Commands()
				if _, not := b.Mark("not run"); not || len(commands) == 0 && b.Lang != "sh" {
					continue
				}
				p = p.opened(t, name, text)
				out := p.run(b, commands)
				ran.Add(int64(len(commands)))
				if i+1 < len(all) && all[i+1].Lang == "text" {
					hasShape(t, fmt.Sprintf("%s:%d", name, all[i+1].Line), all[i+1], out)
				}
			}
		})
	}
}

// parses checks a call against the real commands: the command, its flags and its arguments.
func parses(t *testing.T, at string, call []string) {
	t.Helper()
	root := cli.Root()
	root.InitDefaultHelpCmd()
	root.InitDefaultVersionFlag()
	c, rest, err := root.Find(call)
	if err == nil && c == root && !strings.HasPrefix(strings.Join(call, " "), "--") {
		err = fmt.Errorf("it names no command")
	}
	if err == nil {
		c.InitDefaultHelpFlag()
		err = c.ParseFlags(rest)
	}
	if err == nil && c.Runnable() && !helps(c) {
		if err = c.ValidateRequiredFlags(); err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
	}
	if err != nil {
		t.Errorf("%s: scrimp %s: %v", at, strings.Join(call, " "), err)
	}
}

func helps(c *cobra.Command) bool {
	f := c.Flags().Lookup("help")
	return f != nil && f.Changed || c.Flags().Changed("version") || c.Name() == "help"
}

// readsYAML parses a YAML block as what it is.
func readsYAML(t *testing.T, name string, b Block) {
	t.Helper()
	lines := slices.Clone(b.Lines)
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " "))]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	text := strings.Join(lines, "\n") + "\n"
	var err error
	switch kind, _ := b.Mark("yaml"); kind {
	case "protocol":
		_, err = protocol.Read("protocol.yaml", []byte(text))
	case "market":
		_, err = marketfile.Parse("market.yaml", []byte(text))
	case "engines":
		dir := t.TempDir()
		if err = os.WriteFile(filepath.Join(dir, "engines.yaml"), []byte(text), 0o600); err == nil {
			_, err = engine.Settings(dir)
		}
	case "study":
		_, err = studyfile.Parse("study.yaml", []byte(text))
	case "loop":
		_, err = studyfile.ParseLoop("study.yaml", []byte(text))
	case "pipeline":
		_, err = pipelinefile.Parse("pipeline.yaml", []byte(text), time.Now(), func(string) ([]byte, error) {
			return []byte("scale: 1"), nil
		})
	case "tco":
		_, err = own.ParseTCO("tco.yaml", []byte(text))
	case "roi":
		_, err = own.ParseROI("roi.yaml", []byte(text))
	case "storage-rules":
		_, err = storage.ParseRules("rules.yaml", []byte(text))
	case "storage-prices":
		_, err = storage.ParsePrices("prices.yaml", []byte(text), nil)
	case "terms":
		_, err = commit.ReadTerms("terms.yaml", []byte(text))
	case "functions":
		_, err = serving.ReadFunctions("functions.yaml", []byte(text))
	case "other":
	default:
		program := func(field string) bool { return strings.Contains("\n"+text, "\n"+field+":") }
		if !program("command") && !program("args") && !program("session") {
			text = "command: ./train\n" + text
		}
		_, _, err = spec.Parse(spec.Read, "job.yaml", []byte(text), "job", time.Now())
	}
	if err != nil {
		t.Errorf("%s:%d: %v", name, b.Line, err)
	}
}

// A page runs its commands in order with shared state: a folder, a data folder and a home.
type page struct {
	t         *testing.T
	dir, work string
	port      string
}

// opened returns the page, and creates it if needed, with a short path, because paths of sockets must be short.
func (p *page) opened(t *testing.T, name, text string) *page {
	t.Helper()
	if p != nil {
		return p
	}
	dir, err := os.MkdirTemp("", "d")
	must.Do(t, err)
	work := filepath.Join(dir, strings.TrimSuffix(path.Base(name), ".md"))
	if strings.Contains(text, "<!-- file: train.py -->") { // it starts from nothing
		err = os.Mkdir(work, 0o755)
	} else {
		err = os.CopyFS(work, os.DirFS("testdata/folder"))
	}
	must.Do(t, err)
	p = &page{t: t, dir: dir, work: work, port: strconv.Itoa(port.Reserve(t))}
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(dir) }()
		for _, data := range p.folders() {
			if out, err := exec.Command(testbin.Local.Path(t), "--data", data, "server", "stop", "--now").CombinedOutput(); err != nil {
				t.Errorf("stop the server of %s: %v\n%s", data, err, out)
			}
		}
	})
	return p
}

// folders returns the data folders that the page's commands have made.
func (p *page) folders() (list []string) {
	found, _ := filepath.Glob(p.dir + "/*/server.lock")
	for _, f := range found {
		list = append(list, filepath.Dir(f))
	}
	return list
}

func (p *page) write(name, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.work, name), []byte(text), 0o644))
}

// run runs the commands of a block, and returns their output.
func (p *page) run(b Block, commands []string) string {
	p.t.Helper()
	var all strings.Builder
	url, background := b.Mark("background")
	want, _ := b.Mark("exit")
	status, _ := strconv.Atoi(want)
	for _, line := range commands {
		line = strings.ReplaceAll(line, ":7077", ":"+p.port)
		if background {
			p.start(line, strings.ReplaceAll(url, ":7077", ":"+p.port))
			continue
		}
		ctx, cancel := context.WithTimeout(p.t.Context(), eventually.Limit)
		began := time.Now()
		out, err := p.command(ctx, line).CombinedOutput()
		cancel()
		p.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), line)
		all.Write(out)
		code := 0
		if err != nil {
			code = -1
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			}
		}
		if code != status {
			p.t.Errorf("line %d: %s: status %d, want %d\n%s", b.Line, line, code, status, out)
		}
	}
	return all.String()
}

func (p *page) command(ctx context.Context, line string) *exec.Cmd {
	helper, err := filepath.Abs(filepath.Join(root, "sdk", "python"))
	must.Do(p.t, err)
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Dir = p.work
	c.WaitDelay = 10 * time.Second
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(testbin.Local.Path(p.t))+":"+os.Getenv("PATH"), "HOME="+p.dir, "SCRIMP_DATA="+filepath.Join(p.dir, "data"),
		"SCRIMP_SERVER=http://127.0.0.1:"+p.port, "HF_TOKEN=secret", "HOOK_TOKEN=secret", "PYTHONPATH="+helper)
	return c
}

// start runs a command until the page ends, and waits until it answers.
func (p *page) start(line, url string) {
	p.t.Helper()
	c := p.command(context.Background(), "exec "+line)
	run := proc.Start(p.t, c)
	p.t.Cleanup(func() {
		_ = run.Signal(syscall.SIGTERM)
		_ = run.Wait()
	})
	eventually.True(p.t, url+" answers", func() bool {
		answer, err := http.Get(url)
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, func() string { return line })
}

// hasShape compares printed output with real output: each printed line must have a counterpart, whatever the
// figures. Lines that start as the block's mark "chance" says are optional, since they depend on the host's speed.
func hasShape(t *testing.T, at string, b Block, out string) {
	t.Helper()
	have := map[string]bool{}
	for line := range strings.Lines(out) {
		have[Shape(line)] = true
	}
	chance, has := b.Mark("chance")
	var missing []string
	for _, line := range b.Lines {
		if has && strings.HasPrefix(strings.TrimSpace(line), chance) {
			continue
		}
		if s := Shape(line); len(s) > 2 && !have[s] {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s: no line of the output begins with %q:\n%s", at, missing, out)
	}
}

var inline = regexp.MustCompile("`scrimp ([^`]+)`")

// Commands in sentences must exist, too; their arguments may be missing.
func TestDocs_NamedCommandsExist(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" {
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			for _, call := range Calls("scrimp " + m[1]) {
				n++
				root := cli.Root()
				root.InitDefaultVersionFlag()
				c, rest, err := root.Find(call)
				for _, a := range rest {
					flag, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
					known := len(flag) == 1 && c.Flags().ShorthandLookup(flag) != nil || c.Flags().Lookup(flag) != nil ||
						c.InheritedFlags().Lookup(flag) != nil || flag == "help"
					if a == "--" {
						break
					}
					if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && len(flag) > 1 { // several letters together, as in -it
						known = !strings.ContainsFunc(flag, func(letter rune) bool { return c.Flags().ShorthandLookup(string(letter)) == nil })
					}
					if strings.HasPrefix(a, "-") && !known {
						err = fmt.Errorf("it has no flag %s", a)
					}
				}
				if err != nil || c == root && call[0][0] != '-' {
					t.Errorf("%s: scrimp %s: %v", name, strings.Join(call, " "), err)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("%d commands were found: the documents were not read", n)
	}
}
