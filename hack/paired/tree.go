package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// errNotThere says that a tree lacks a measurement, or that this machine cannot do it.
var errNotThere = errors.New("not there")

// Tree is one of the two compared trees.
type Tree struct {
	Name   string // base or now
	Dir    string
	Commit string
	temp   string // binaries, and what they write
	built  map[string]built
}

type built struct {
	path string
	err  error
}

// workspace holds everything that a run creates: the worktree of base, binaries, databases.
type workspace struct {
	repo string
	dir  string
}

// open creates the workspace and checks base out into it.
func open(ctx context.Context, repo, base string) (w *workspace, trees [2]*Tree, err error) {
	dir, err := os.MkdirTemp("", "paired-")
	if err != nil {
		return nil, trees, err
	}
	w = &workspace{repo, dir}
	if err := w.fill(ctx, base, &trees); err != nil {
		w.close()
		return nil, trees, err
	}
	return w, trees, nil
}

func (w *workspace) fill(ctx context.Context, base string, trees *[2]*Tree) error {
	if err := os.Chmod(w.dir, 0o755); err != nil { // PostgreSQL runs as its own user
		return err
	}
	commit, err := git(ctx, w.repo, "rev-parse", "--verify", "--quiet", base+"^{commit}")
	if err != nil {
		return fmt.Errorf("find commit %s: %w: give another with -base", base, err)
	}
	tree := filepath.Join(w.dir, "base")
	if _, err := git(ctx, w.repo, "worktree", "add", "--detach", tree, commit); err != nil {
		return fmt.Errorf("check %s out: %w", base, err)
	}
	// Recorded markets are beside the repository; the link lets the worktree find them.
	shared := filepath.Join(filepath.Dir(w.repo), "shared")
	if _, err := os.Stat(shared); err == nil {
		if err := os.Symlink(shared, filepath.Join(w.dir, "shared")); err != nil {
			return err
		}
	}
	for i, t := range []*Tree{{Name: "base", Dir: tree}, {Name: "now", Dir: w.repo}} {
		t.temp, t.built = filepath.Join(w.dir, "t"+t.Name[:1]), map[string]built{}
		if err := os.Mkdir(t.temp, 0o755); err != nil {
			return err
		}
		if t.Commit, err = git(ctx, t.Dir, "log", "-1", "--format=%h %s"); err != nil {
			return err
		}
		trees[i] = t
	}
	if changed, err := git(ctx, w.repo, "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		trees[1].Commit += " (and what is not committed)"
	}
	return nil
}

// close removes what open created, also after Ctrl-C.
func (w *workspace) close() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	tree := filepath.Join(w.dir, "base")
	// --force twice also removes a worktree that was still being added. An error is ignored, as it may not have been
	// added at all.
	_, _ = git(ctx, w.repo, "worktree", "remove", "--force", "--force", tree)
	if err := os.RemoveAll(w.dir); err != nil {
		fmt.Fprintln(os.Stderr, "remove the temporary folder:", err)
	}
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := run(ctx, dir, nil, "git", args...)
	return strings.TrimSpace(out), err
}

// run runs a program in its own process group, and returns its standard output. When ctx is done, the whole group
// ends.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	out, _, err := timed(ctx, dir, env, name, args...)
	return out, err
}

// timed is run that also returns the program's processor time.
func timed(
	ctx context.Context, dir string, env []string, name string, args ...string,
) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // a server that was left behind may keep the output open
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	used := time.Duration(0)
	if p := cmd.ProcessState; p != nil {
		used = p.UserTime() + p.SystemTime()
	}
	switch {
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case err != nil:
		said := tail(errs.String()+out.String(), 15)
		return out.String(), used, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return out.String(), used, nil
}

// tail returns the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// program builds the real program, once.
func (t *Tree) program(ctx context.Context) (string, error) {
	return t.once(ctx, "scrimp", func(path string) []string {
		return []string{"build", "-tags", "local", "-o", path, "./cmd/scrimp"}
	}, "CGO_ENABLED=0")
}

// tests builds the tests of a package, once. With borrow, a testdata file is compiled with them as if it belonged to
// the package; if that fails, the tree lacks what the file measures.
func (t *Tree) tests(ctx context.Context, pkg, borrow string) (string, error) {
	dir := filepath.Join(t.Dir, filepath.FromSlash(pkg))
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("%w: no folder %s", errNotThere, pkg)
	}
	var args []string
	if borrow != "" {
		overlay, err := t.overlay(dir, borrow)
		if err != nil {
			return "", err
		}
		args = []string{"-overlay", overlay}
	}
	name := strings.ReplaceAll(pkg, "/", "-") + "-" + borrow + ".test"
	path, err := t.once(ctx, name, func(path string) []string {
		return append(append([]string{"test", "-c", "-o", path}, args...), "./"+pkg)
	})
	if err != nil && borrow != "" && ctx.Err() == nil {
		err = fmt.Errorf("%w: testdata/%s does not compile with it: %w", errNotThere, borrow, err)
	}
	return path, err
}

func (t *Tree) once(ctx context.Context, name string, how func(path string) []string, env ...string) (string, error) {
	if b, ok := t.built[name]; ok {
		return b.path, b.err
	}
	path := filepath.Join(t.temp, name)
	_, err := run(ctx, t.Dir, append(env, "TMPDIR="+t.temp), "go", how(path)...)
	t.built[name] = built{path, err}
	return path, err
}
