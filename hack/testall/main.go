// Command testall runs every check that Go alone allows, names what was
// skipped and why, and ends with a count. Under SCRIMP_CI=1 a skip is a failure.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

func main() {
	failed := 0
	if out, err := exec.Command("gofmt", "-l", "client", "cmd", "deploy", "examples", "hack", "internal",
		"sdk").CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		fmt.Printf("gofmt would change:\n%s", out)
		failed++
	}
	if os.Getenv("SCRIMP_CI") == "1" {
		fmt.Println("go vet: make lint has it")
	} else if out, err := exec.Command("go", "vet", "./...").CombinedOutput(); err != nil {
		fmt.Printf("go vet:\n%s", out)
		failed++
	}
	r := tests()
	passed, skipped := r.passed, r.skipped
	failed += r.failed
	r.slowest()
	missing := 0
	for _, s := range skipped {
		fmt.Println("skipped " + s)
		if strings.Contains(s, "not installed") {
			missing++ // the others do not apply: a part of a public suite that asks for what we do not offer
		}
	}
	if os.Getenv("SCRIMP_CI") == "1" && missing > 0 {
		fmt.Println("under SCRIMP_CI=1 a missing component is a failure")
		failed += missing
	}
	for _, why := range r.failures {
		fmt.Println("failed " + why)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, len(skipped))
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

// tests runs go test over everything and shows what failed.
func tests() *results {
	r := &results{output: map[string]*strings.Builder{}}
	// go vet has been here
	cmd := exec.Command("go", "test", "-json", "-vet=off", "-parallel", "4", "-timeout", longest, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		fmt.Println(err)
		r.failed++
		return r
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		r.failed++
		return r
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // a build that failed
			continue
		}
		r.add(e)
	}
	if err := cmd.Wait(); err != nil && r.failed == 0 {
		fmt.Println("go test:", err)
		r.failed++
	}
	sort.Strings(r.skipped)
	return r
}

// longest is for a test that hangs, not for a machine that is slow.
const longest = "60m"

// results are what the tests so far came to, and what those that run have printed.
type results struct {
	passed, failed int
	skipped        []string
	output         map[string]*strings.Builder
	took           []event  // tests with their time
	failures       []string // tests that failed, each with the beginning of what it printed
}

// slowest names the tests that took longest, on a machine that ran others beside them.
func (r *results) slowest() {
	slices.SortFunc(r.took, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range r.took[:min(len(r.took), 20)] {
		fmt.Printf("slow %4.0f s  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
}

// add counts an event of go test, and shows a failure.
func (r *results) add(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if r.output[name] == nil {
			r.output[name] = &strings.Builder{}
		}
		r.output[name].WriteString(e.Output)
	case "pass":
		if e.Test == "" {
			fmt.Printf("ok %4.0f s  %s\n", e.Elapsed, e.Package)
		} else {
			r.passed++
			r.slow(e)
		}
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, name+reason(r.output[name]))
		}
	case "fail", "build-fail":
		r.failed++
		if e.Test == "" {
			r.unended(e.Package)
		}
		fmt.Printf("FAIL  %s\n", name)
		if b := r.output[name]; b != nil {
			fmt.Println(b.String())
			if e.Test != "" {
				r.failures = append(r.failures, name+"\n"+begin(b.String()))
			}
		}
	}
	if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
		delete(r.output, name)
	}
}

// slow notes how long a test took that is none of another's parts.
func (r *results) slow(e event) {
	if e.Elapsed >= 1 && !strings.Contains(e.Test, "/") {
		r.took = append(r.took, e)
	}
}

// unended shows the tests of a package that did not end: one of them is why it failed, and the last to print
// has the stacks of all.
func (r *results) unended(pkg string) {
	for _, name := range slices.Sorted(maps.Keys(r.output)) {
		test, ours := strings.CutPrefix(name, pkg+" ")
		if !ours || test == "" {
			continue
		}
		text := r.output[name].String()
		if len(text) > mostShown {
			text = text[:mostShown] + "\n... (cut)\n"
		}
		fmt.Printf("DID NOT END  %s\n%s\n", name, text)
		delete(r.output, name)
	}
}

// begin is what a test said first: the log of a program that it had beside it comes after it, and may be long.
func begin(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "===") {
			continue
		}
		if len(line) > 1000 {
			line = line[:1000] + " ...\n"
		}
		if b.WriteString(line); b.Len() > 4000 {
			break
		}
	}
	return b.String()
}

// mostShown is how much is shown of what a test printed that did not end, in bytes.
const mostShown = 200 << 10

// reason is what a skipped test said.
func reason(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return ": " + line
		}
	}
	return ""
}
