package ignore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// Trees with few names, and lines from few pieces, so that most lines match something. Undocumented behaviour of git is
// not tested: empty segments, quoted slashes, sets with a slash, and a**/, where git contradicts its documentation
// after plain text.
var (
	folders = []string{"a", "a/b", "a/b/c", "a/b/c/b", "b", "b/a", "[x]", "a b"}
	files   = []string{"x", "a.o", "a/x", "a/b/x", "a/b/c/x", "a/b/c/b/a.o", "b/x", "b/a/a.o", "[x]/x", "a b/x ", "#x",
		"!x", `a\x`, "b-", "]", "a/*"}
	pieces = []string{"a", "b", "c", "x", "*", "**", "?", "/", "/", "/", ".o", "[ab]", "[!a]", "[^b]", "[]x]", "[a-c]",
		"[[:alpha:]]", `\`, `\*`, " ", "#", "!", "]", "-", "[x-]", `[\]]`, "[[:nope:]]", "**/", "/**", "/**/"}
)

var quirk = regexp.MustCompile(`[^/\n*]\*\*+/`)

// TestExcludes_AgreesWithGit compares Excludes with git itself on random pattern files.
func TestExcludes_AgreesWithGit(t *testing.T) {
	lane.Component(t, "host")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed; .ci/run installs it")
	}
	root := t.TempDir()
	run := func(in string, args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(in)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
			"XDG_CONFIG_HOME="+root, "HOME="+root, "GIT_DIR="+filepath.Join(root, ".git"), "GIT_WORK_TREE="+root)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: nothing is ignored
			t.Fatalf("git %v: %v\n%s", args, err, errs.String())
		}
		return string(out)
	}
	run("", "init", "-q")
	run("", "config", "core.ignorecase", "false")
	for _, d := range folders {
		must.Do(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, f := range files {
		must.Do(t, os.WriteFile(filepath.Join(root, f), nil, 0o644))
	}
	all := strings.Join(append(append([]string{}, folders...), files...), "\x00") + "\x00"
	matched := 0
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var lines strings.Builder
		for range 1 + chance.IntN(4) {
			for range 1 + chance.IntN(5) {
				lines.WriteString(pieces[chance.IntN(len(pieces))])
			}
			lines.WriteString([]string{"\n", "\n", "\r\n", "  \n"}[chance.IntN(4)])
		}
		text := lines.String()
		if strings.Contains(text, "//") || strings.Contains(text, `\/`) || quirk.MatchString(text) {
			continue
		}
		must.Do(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte(text), 0o644))
		out := map[string]bool{}
		for name := range strings.SplitSeq(run(all, "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			out[name] = true
		}
		p := Parse(text)
		for i, name := range append(append([]string{}, folders...), files...) {
			if got := p.Excludes(name, i < len(folders)); got != out[name] {
				t.Errorf("seed %d: %q on %q = %v, git says %v", seed, text, name, got, out[name])
			}
			if out[name] {
				matched++
			}
		}
	}
	if matched < 200 {
		t.Errorf("only %d paths matched: the test shows nothing", matched)
	}
}

// slowGlob is glob written like its definition.
func slowGlob(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		return slowGlob(pattern[1:], s) || s != "" && slowGlob(pattern, s[1:])
	}
	if s == "" {
		return false
	}
	ok, next := one(pattern, 0, s[0])
	return ok && slowGlob(pattern[next:], s[1:])
}

func FuzzGlob(f *testing.F) {
	f.Add("*.o", "a.o")
	f.Add("a*b*[c-e]?", "axbxbcd")
	f.Add(`[]a]\**[`, "]*")
	f.Add("[[:digit:]-z]*[!^]", "7--")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 12 {
			t.Skip() // the slow twin tries a product of choices
		}
		if got, want := glob(pattern, s), slowGlob(pattern, s); got != want {
			t.Fatalf("glob(%q, %q) = %v, want %v", pattern, s, got, want)
		}
	})
}

func ExamplePatterns_Excludes() {
	p := Parse("*.pt\n!best.pt\ncache/\n/data/**/raw\n")
	for _, name := range []string{"out/last.pt", "out/best.pt", "src/cache/best.pt", "data/2026/01/raw"} {
		fmt.Println(name, p.Excludes(name, false))
	}
	// Output:
	// out/last.pt true
	// out/best.pt false
	// src/cache/best.pt true
	// data/2026/01/raw true
}
