package archtest

import (
	_ "embed" // for the lists of words
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A Word is a private word of this project, with the usual word for the same thing.
type Word struct {
	text *regexp.Regexp // in comments, strings and documents
	Say  string
	// allowed matches uses of the same letters that every reader knows. It is nil where the word has none.
	allowed *regexp.Regexp
	// parts, in lower case: every match of text contains one of them. A search for them first is about fifty times
	// as fast as the match.
	parts []string
}

// word parses a row of words.txt.
func word(row []string) Word {
	parsed, err := syntax.Parse(row[0], syntax.Perl)
	if err != nil {
		panic(err)
	}
	w := Word{text: regexp.MustCompile(row[0]), Say: row[1], parts: literals(parsed.Simplify())}
	if len(row) > 2 {
		w.allowed = regexp.MustCompile(row[2])
	}
	return w
}

// in returns the first place where text says the word, or "". Lower is the text in lower case.
func (w Word) in(text, lower string) string {
	has := func(part string) bool { return strings.Contains(lower, part) }
	if len(w.parts) > 0 && !slices.ContainsFunc(w.parts, has) {
		return ""
	}
	if w.allowed != nil {
		text = w.allowed.ReplaceAllString(text, "")
	}
	return w.text.FindString(text)
}

// rows returns the lines of a list as columns, without its comments.
func rows(list string) (rows [][]string) {
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return rows
}

// literals returns lower-case texts such that every match of re contains one of them; nil: unknown.
func literals(re *syntax.Regexp) (list []string) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat: // the longest part
		for _, sub := range re.Sub {
			if l := literals(sub); shortest(l) > shortest(list) {
				list = l
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			l := literals(sub)
			if l == nil {
				return nil
			}
			list = append(list, l...)
		}
	default: // unknown for other operators
	}
	return list
}

// shortest returns the length of the shortest text of list; 0: none.
func shortest(list []string) int {
	n := 0
	for _, s := range list {
		if n == 0 || len(s) < n {
			n = len(s)
		}
	}
	return n
}

// wordList and nameList stand outside the source, so that this file does not use the words that it forbids.
var (
	//go:embed words.txt
	wordList string
	//go:embed names.txt
	nameList string
)

// words are what nobody looks for in a scheduler's source. Words that are plain English
// elsewhere ("a look", "kind", "still") are held as names of declarations only.
var words = func() (list []Word) {
	for _, row := range rows(wordList) {
		list = append(list, word(row))
	}
	return list
}()

// A name is a name that declarations must not have: say is the usual word. in is the package where the name has its
// private meaning; it may be used elsewhere, where it is plain English. "" is everywhere.
type name struct{ say, in string }

var names = func() map[string]name {
	all := map[string]name{}
	for _, row := range rows(nameList) {
		n := name{say: row[1]}
		if len(row) > 2 {
			n.in = row[2]
		}
		all[row[0]] = n
	}
	return all
}()

// Words returns every private word in the package's declarations, comments and strings, except in tests.
func Words(p Package) (problems []string) {
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		say := func(n ast.Node, text string) {
			for _, bad := range spoken(text) {
				problems = append(problems, fmt.Sprintf("%s: %s", f.Set.Position(n.Pos()), bad))
			}
		}
		for _, group := range f.Tree.Comments {
			say(group, group.Text())
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				say(lit, strings.Trim(lit.Value, "\"`"))
			}
			for _, name := range declared(n) {
				if n, private := names[name.Name]; private && (n.in == "" || within(p.Dir, "internal/"+n.in)) {
					problems = append(problems, fmt.Sprintf("%s: %s: write %s", f.Set.Position(name.Pos()), name.Name, n.say))
				}
			}
			return true
		})
	}
	return problems
}

// declared returns the names that a node declares at package level, as a field or as a method.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	}
	return nil
}

// spoken returns the private words in a text, each with the usual word.
func spoken(text string) (list []string) {
	text = strings.Join(strings.Fields(text), " ")
	lower := strings.ToLower(text)
	for _, w := range words {
		if bad := w.in(text, lower); bad != "" {
			list = append(list, fmt.Sprintf("%q: write %s", bad, w.Say))
		}
	}
	return list
}

// Document returns the private words of a Markdown file, by paragraph.
func Document(fsys fs.FS, name string) (problems []string, err error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	line := 1
	for _, paragraph := range strings.SplitAfter(string(text), "\n\n") {
		for _, bad := range spoken(paragraph) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s", name, line, bad))
		}
		line += strings.Count(paragraph, "\n")
	}
	return problems, nil
}

// Documents lists the Markdown files below fsys whose words are checked. Changelogs are exempt, because they
// describe the past.
func Documents(fsys fs.FS) (names []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case path.Ext(name) == ".md" && name != "CHANGELOG.md":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
