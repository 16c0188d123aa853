package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// An outcome is how one test ended.
type outcome struct {
	Package, Test string
	Action        string // pass, fail or skip
	Seconds       float64
	Output        string // of a test that failed or was skipped
}

// name returns the test's short name for people.
func (o outcome) name() string {
	return strings.TrimPrefix(o.Package, "scrimp/") + " " + o.Test
}

// results are the outcomes of one go test.
type results struct {
	outcomes []outcome
	packages map[string]float64 // seconds by package
	broken   []string           // packages that did not build, or ended without saying which test failed
	cached   int                // packages whose result came from Go's cache

	output map[string]*strings.Builder // of tests that run
	std    io.Writer                   // where go test's own messages go
}

// goTest runs go test with these arguments and environment, and collects the outcome of each test. Cancelling ctx
// ends the tests with their child processes, because the tests run in their own process group.
func goTest(ctx context.Context, env []string, args ...string) (*results, error) {
	r := &results{packages: map[string]float64{}, output: map[string]*strings.Builder{}, std: os.Stdout}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = env
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start go test: %w", err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			_, _ = fmt.Fprintln(r.std, lines.Text())
			continue
		}
		r.add(e)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return r, fmt.Errorf("go test: %w", context.Cause(ctx))
	}
	if err != nil && len(r.failed()) == 0 && len(r.broken) == 0 {
		return r, fmt.Errorf("go test: %w", err)
	}
	return r, nil
}

func (r *results) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Test == "" && strings.HasPrefix(e.Output, "ok ") && strings.Contains(e.Output, "(cached)") {
			r.cached++
		}
		if r.output[key] == nil {
			r.output[key] = &strings.Builder{}
		}
		if b := r.output[key]; b.Len() < maxKept {
			b.WriteString(e.Output)
		}
	case "pass", "skip", "fail", "build-fail":
		text := ""
		if b := r.output[key]; b != nil {
			text = b.String()
		}
		delete(r.output, key)
		if e.Test != "" {
			o := outcome{e.Package, e.Test, e.Action, e.Elapsed, ""}
			if e.Action != "pass" {
				o.Output = text
			}
			r.outcomes = append(r.outcomes, o)
			return
		}
		r.packages[e.Package] += e.Elapsed
		if e.Action == "build-fail" || e.Action == "fail" && !r.explained(e.Package) {
			r.broken = append(r.broken, e.Package+"\n"+text+r.unended(e.Package))
		}
	}
}

// maxKept bounds the stored output of one test, in bytes.
const maxKept = 200 << 10

// explained reports whether a test of the package has failed, which explains the package's failure.
func (r *results) explained(pkg string) bool {
	return slices.ContainsFunc(r.outcomes, func(o outcome) bool { return o.Package == pkg && o.Action == "fail" })
}

// unended returns the output of a package's tests that did not end: one of them explains the package's failure.
func (r *results) unended(pkg string) (text string) {
	for key, b := range r.output {
		if test, ours := strings.CutPrefix(key, pkg+" "); ours && test != "" {
			text += "did not end: " + test + "\n" + b.String()
		}
	}
	return text
}

// failed returns the failed tests, without those that failed only because a subtest did.
func (r *results) failed() (list []outcome) {
	for _, o := range r.outcomes {
		if o.Action != "fail" {
			continue
		}
		part := slices.ContainsFunc(r.outcomes, func(p outcome) bool {
			return p.Action == "fail" && p.Package == o.Package && strings.HasPrefix(p.Test, o.Test+"/")
		})
		if !part {
			list = append(list, o)
		}
	}
	return list
}

// count returns how many tests ended with an action.
func (r *results) count(action string) (n int) {
	for _, o := range r.outcomes {
		if o.Action == action {
			n++
		}
	}
	return n
}

// top returns the name of the test function, without the subtest.
func (o outcome) top() string {
	name, _, _ := strings.Cut(o.Test, "/")
	return name
}

// merge adds the outcomes of another run.
func (r *results) merge(o *results) {
	r.outcomes = append(r.outcomes, o.outcomes...)
	r.broken = append(r.broken, o.broken...)
	r.cached += o.cached
	for p, s := range o.packages {
		r.packages[p] += s
	}
}
