package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// root is the repository's folder.
const root = "../../.."

// documents returns all Markdown files of the repository by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch rel, _ := filepath.Rel(root, path); {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "build" || rel == "dist" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			list[filepath.ToSlash(rel)] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{"README.md", "docs/README.md", "docs/job-file.md", "docs/reference/cli.md"} {
		if list[must] == "" {
			t.Fatalf("%s was not read: nothing would be held", must)
		}
	}
	return list
}

func TestDocs_LinksResolve(t *testing.T) {
	t.Parallel()
	all := documents(t)
	n := 0
	for name, text := range all {
		for _, to := range Links(text) {
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			n++
			file, fragment, _ := strings.Cut(to, "#")
			target := name
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s is not there", name, to)
			} else if fragment != "" && !Anchors(all[target])[fragment] {
				t.Errorf("%s: %s has no heading #%s", name, target, fragment)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links were followed: the documents were not read", n)
	}
}

// Every page is linked from the index of its folder or from the README.
func TestDocs_PagesAreLinked(t *testing.T) {
	t.Parallel()
	all, linked := documents(t), map[string]bool{"README.md": true}
	for name, text := range all {
		for _, to := range Links(text) {
			file, _, _ := strings.Cut(to, "#")
			linked[filepath.ToSlash(filepath.Join(filepath.Dir(name), file))] = true
		}
	}
	for name := range all {
		if !linked[name] {
			t.Errorf("no document leads to %s", name)
		}
	}
}

func TestBlocks_ParsesMarkdown(t *testing.T) {
	t.Parallel()
	text := "# A b, `c`\n\n<!-- not run: why -->\n```sh\nscrimp run 'a  # b' # c\nscrimp x \\\n  --y && scrimp z | cat\n```\n\n" +
		"text\n\n    scrimp jobs\n    out\n\n[a](b.md#c) `[d](e)`\n"
	blocks := Blocks(text)
	if len(blocks) != 2 || blocks[0].Line != 5 || blocks[1].Line != 12 {
		t.Fatalf("%+v", blocks)
	}
	if why, ok := blocks[0].Mark("not run"); !ok || why != "why" {
		t.Errorf("%q %v", why, ok)
	}
	if got := blocks[0].Commands(); !reflect.DeepEqual(got, []string{"scrimp run 'a  # b'", "scrimp x --y && scrimp z | cat"}) {
		t.Errorf("%q", got)
	}
	if got := Calls(blocks[0].Commands()[1]); !reflect.DeepEqual(got, [][]string{{"x", "--y"}, {"z"}}) {
		t.Errorf("%q", got)
	}
	if got := Calls(blocks[0].Commands()[0]); !reflect.DeepEqual(got, [][]string{{"run", "a  # b"}}) {
		t.Errorf("%q", got)
	}
	if got := blocks[1].Commands(); !reflect.DeepEqual(got, []string{"scrimp jobs"}) {
		t.Errorf("%q", got)
	}
	if got := Links(text); !reflect.DeepEqual(got, []string{"b.md#c"}) || !Anchors(text)["a-b-c"] {
		t.Errorf("%q %v", got, Anchors(text))
	}
	for line, want := range map[string]string{"  cost   $1.20  of": "cost", "1 attempt": "", "not local/a: dear": "not local/a: dear"} {
		if got := Shape(line); got != want {
			t.Errorf("%q has the shape %q, want %q", line, got, want)
		}
	}
}
