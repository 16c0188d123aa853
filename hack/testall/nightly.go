package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/test/lane"
)

// A step is one part of the nightly lane: a shell command, run in the root of the repository.
type step struct {
	name, command string
}

// steps returns every step of the nightly lane. Their order is fixed, since make nightly PART=i/n counts them.
func steps(marks []mark) (list []step, err error) {
	tests := selected(marks, "")
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		list = append(list, step{"long:" + strings.TrimPrefix(pkg, "./"),
			fmt.Sprintf("go test -trimpath -vet=off -parallel 4 -timeout 60m -run '%s' %s", pattern(tests[pkg]), pkg)})
	}
	out, err := exec.Command("go", "list", "-tags", "local", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	local := strings.Fields(string(out))
	many, err := drawn(marks, local)
	if err != nil {
		return nil, err
	}
	list = append(list, many...)
	fuzz, err := fuzzTests()
	if err != nil {
		return nil, err
	}
	list = append(list, fuzz...)
	for _, pkg := range local {
		list = append(list, step{"race:" + strings.TrimPrefix(pkg, "scrimp/"),
			"CGO_ENABLED=1 " + lane.Variable + "=" + lane.Commit +
				" go test -trimpath -race -tags local -parallel 4 -timeout 60m " + pkg})
	}
	for _, chaos := range []string{"chaos", "chaos-ssh", "chaos-slurm", "chaos-kube", "chaos-aws"} {
		list = append(list, step{chaos, "make " + chaos + " CHAOS=1m"})
	}
	for _, demo := range []string{"demo", "demo-ssh", "demo-slurm", "demo-kube", "demo-aws"} {
		list = append(list, step{demo, "make " + demo})
	}
	for first := 0; first < simulated; first += simulatedAtOnce {
		list = append(list, step{fmt.Sprintf("sim:%d", first),
			fmt.Sprintf("make sim SEEDS=%d FIRST=%d", simulatedAtOnce, first)})
	}
	return append(list,
		step{"laws", "make laws"},
		step{"without", "hack/without make test"},
		step{"dist", "make dist"}), nil
}

// drawn returns a step for each of the local packages with tests of the commit lane that use more cases in this lane,
// through lane.Pick. Other packages use it in marked tests only, which are steps of their own.
func drawn(marks []mark, local []string) (list []step, err error) {
	out, err := exec.Command("grep", "-rlE", "--include=*_test.go", `lane\.Pick\(`, "internal", "examples",
		"client").Output()
	if err != nil {
		return nil, fmt.Errorf("find the tests that draw cases: %w", err)
	}
	var folders []string
	for name := range strings.Lines(string(out)) {
		folders = append(folders, filepath.ToSlash(filepath.Dir(strings.TrimSpace(name))))
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if !slices.Contains(local, "scrimp/"+folder) {
			continue
		}
		var marked []string
		for _, m := range marks {
			if m.pkg == "./"+folder {
				marked = append(marked, m.test)
			}
		}
		command := "go test -trimpath -tags local -vet=off -parallel 4 -timeout 60m"
		if len(marked) > 0 {
			command += " -skip '" + pattern(marked) + "'"
		}
		list = append(list, step{"many:" + folder, command + " ./" + folder})
	}
	return list, nil
}

// simulated is the number of simulated runs in the nightly lane, and simulatedAtOnce the number in one of its steps,
// which ends within a quarter of the five minutes that .ci/run has for a tenth of the lane.
const simulated, simulatedAtOnce = 100_000, 200

// fuzzTests returns a step for each fuzz test, half a minute each.
func fuzzTests() (list []step, err error) {
	out, err := exec.Command("grep", "-rnoE", "--include=*_test.go", "^func Fuzz[A-Za-z0-9_]+", ".").Output()
	if err != nil {
		return nil, fmt.Errorf("find the fuzz tests: %w", err)
	}
	form := regexp.MustCompile(`^\./(.*)/[^/]+:\d+:func (\w+)$`)
	for line := range strings.Lines(string(out)) {
		if m := form.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			list = append(list, step{"fuzz:" + m[1] + "/" + m[2],
				fmt.Sprintf("go test -trimpath ./%s -run '^$' -fuzz '^%s$' -fuzztime 30s", m[1], m[2])})
		}
	}
	slices.SortFunc(list, func(a, b step) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

// nightly runs the steps of the nightly lane, or one part of them. A step that fails is a finding, and a failure unless
// hack/testall/known.txt lists it.
func nightly(ctx context.Context, root string, marks []mark, o options) error {
	all, err := steps(marks)
	if err != nil {
		return err
	}
	if all, err = chosen(all, o); err != nil {
		return err
	}
	known, err := knownFailures(filepath.Join(root, "hack", "testall", "known.txt"))
	if err != nil {
		return err
	}
	env, err := laneEnv(ctx, lane.Night)
	if err != nil {
		return err
	}
	// If there is a limit, each step gets a quarter of it: otherwise a step of an hour would be the only one of such
	// a run.
	most := func(step) time.Duration { return math.MaxInt64 }
	if o.limit > 0 {
		most = func(step) time.Duration { return o.limit / 4 }
	}
	return runSteps(ctx, root, env, all, known, o.limit, most)
}

// chosen returns the selected steps, beginning with the step given by o.turn: a run without time for all of them
// begins elsewhere each time.
func chosen(all []step, o options) (list []step, err error) {
	i, n := 0, 1
	if o.part != "" {
		if _, err := fmt.Sscanf(o.part, "%d/%d", &i, &n); err != nil || n < 1 || i < 0 || i >= n {
			return nil, fmt.Errorf("-part %q: want i/n with 0 <= i < n, such as 7/10", o.part)
		}
	}
	for k, s := range all {
		if k%n == i && (o.wants(s.name) || o.wants(group(s.name))) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	first := o.turn % len(list)
	return append(slices.Clone(list[first:]), list[:first]...), nil
}

// runSteps runs the steps in order, each for at most the duration from most and all within limit (0: no limit), and
// prints the findings.
func runSteps(ctx context.Context, root string, env []string, list []step, known map[string]string,
	limit time.Duration, most func(step) time.Duration) error {
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	var failed []string
	passed, left := 0, 0
	for _, s := range list {
		if ctx.Err() != nil {
			left++
			continue
		}
		begun := time.Now()
		mine, stop := context.WithTimeout(ctx, most(s))
		out, err := shell(mine, root, env, s.command)
		ended := mine.Err() != nil
		stop()
		switch {
		case err == nil:
			passed++
			fmt.Printf("ok    %4.0f s  %s\n", time.Since(begun).Seconds(), s.name)
		case ended:
			left++ // the limit ended it, so it is not a finding
			fmt.Printf("ended %4.0f s  %s\n", time.Since(begun).Seconds(), s.name)
		case cmp.Or(known[s.name], known[group(s.name)]) != "":
			fmt.Printf("known %4.0f s  %s: %s\n%s\n", time.Since(begun).Seconds(), s.name,
				cmp.Or(known[s.name], known[group(s.name)]), tail(out))
		default:
			failed = append(failed, s.name)
			fmt.Printf("FOUND %4.0f s  %s\n  $ %s\n%s\n", time.Since(begun).Seconds(), s.name, s.command, tail(out))
		}
	}
	if left > 0 {
		fmt.Printf("%d steps were not finished within %v\n", left, limit)
	}
	fmt.Printf("%d passed, %d failed\n", passed, len(failed))
	if len(failed) > 0 {
		return errors.New("the nightly lane failed: " + strings.Join(failed, ", "))
	}
	return nil
}

// group is the first part of a step's name, such as race.
func group(name string) string {
	g, _, _ := strings.Cut(name, ":")
	return g
}

// shell runs a command in its own process group, which ends with ctx.
func shell(ctx context.Context, root string, env []string, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = root, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tail returns the text around the first failure, and the end of the text.
func tail(text string) string {
	const most, failure = 8000, 2000
	if len(text) <= most {
		return text
	}
	end := text[len(text)-most:]
	at := strings.Index(text, "--- FAIL")
	if at < 0 || at >= len(text)-most {
		return "...\n" + end
	}
	return "...\n" + text[at:min(at+failure, len(text)-most)] + "\n...\n" + end
}

// knownFailures reads the list of steps that fail for now: on each line the name of a step, then why.
func knownFailures(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	known := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, why, ok := strings.Cut(strings.TrimSpace(lines.Text()), " "); ok && !strings.HasPrefix(name, "#") {
			known[name] = why
		}
	}
	return known, lines.Err()
}
