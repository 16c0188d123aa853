package docs_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/cli"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// advising lists the packages whose texts tell users which field of a job file to change.
var advising = []string{"work/recommend", "work/waste", "work/diagnose", "job/check", "job/jobimport", "server/receipts",
	"server/submit", "server/prediction", "cli/show", "decide/plan"}

var (
	// instructed matches a field that a text tells the reader to set or to leave out.
	instructed = regexp.MustCompile(`\b(?:set|write|leave|give) ([a-z_]+(?:\.[a-z_]+)*)(?:: | out of the job file)`)
	// dotted matches a field within another.
	dotted = regexp.MustCompile(`\b[a-z_]+(?:\.[a-z_]+)+\b`)
	// ofOthers lists the fields of other files that advice names.
	ofOthers = map[string]bool{"timing": true}
)

var (
	// recommended matches a command of scrimp in a text.
	recommended = regexp.MustCompile(`\bscrimp ([a-z][a-z-]+)`)
	// prose lists the words that follow the name of the program in sentences about it. Verbs in the present end in s.
	prose = []string{"and", "can", "cannot", "did", "for", "have", "itself", "job", "no", "rented", "terminated", "that", "then",
		"wrote"}
)

// Each command that a text of the program recommends exists.
func TestAdvice_NamesCommands(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range cli.Root().Commands() {
		known[c.Name()] = true
	}
	known["help"] = true
	for _, text := range texts(t, filepath.Join("..", "..", "..", "internal")) {
		for _, m := range recommended.FindAllStringSubmatch(text, -1) {
			if word := m[1]; !known[word] && !strings.HasSuffix(word, "s") && !slices.Contains(prose, word) {
				t.Errorf("scrimp %s is no command: %.200q", word, text)
			}
		}
	}
}

// schemaNode is a part of the schema of the job file.
type schemaNode struct {
	Properties           map[string]schemaNode `json:"properties"`
	AdditionalProperties any                   `json:"additionalProperties"`
	Ref                  string                `json:"$ref"`
	AnyOf                []schemaNode          `json:"anyOf"`
	OneOf                []schemaNode          `json:"oneOf"`
}

// has reports whether a value of the schema has the field; an open object has any.
func (n schemaNode) has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	if sub, ok := n.Properties[path[0]]; ok {
		return sub.has(path[1:])
	}
	for _, sub := range append(n.AnyOf, n.OneOf...) {
		if sub.has(path) {
			return true
		}
	}
	return n.Properties == nil && n.AdditionalProperties != nil && n.AdditionalProperties != false
}

// texts returns the string literals of the packages below a folder, constants joined by + as one.
func texts(t *testing.T, folder string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := constant(e)
			if ok {
				list = append(list, text)
			}
			return !ok
		})
		return nil
	})
	must.Do(t, err)
	return list
}

// constant returns the value of a string literal, or of several joined by +.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	case *ast.BinaryExpr:
		left, okLeft := constant(e.X)
		right, okRight := constant(e.Y)
		return left + right, okLeft && okRight
	}
	return "", false
}

// Each field of the job file that advice names is one of its schema, at the place that the advice says.
func TestAdvice_NamesFieldsOfTheJobFile(t *testing.T) {
	t.Parallel()
	var schema schemaNode
	must.Do(t, json.Unmarshal(spec.Schema(), &schema))
	if schema.has([]string{"capacity"}) || !schema.has([]string{"resources", "capacity"}) {
		t.Fatal("the schema is not read as it is")
	}
	count := 0
	for _, folder := range advising {
		for _, text := range texts(t, filepath.Join("..", "..", filepath.FromSlash(folder))) {
			var fields []string
			if strings.Contains(text, "job file") {
				for _, m := range instructed.FindAllStringSubmatch(text, -1) {
					fields = append(fields, m[1])
				}
			}
			for _, at := range dotted.FindAllStringIndex(text, -1) {
				field := text[at[0]:at[1]]
				top, _, _ := strings.Cut(field, ".")
				isCall := strings.HasPrefix(text[at[1]:], "(") // of a program, such as model.fit()
				isSentence := strings.Contains(text, " ")      // else it may be a field of another system
				if isSentence && !isCall && schema.has([]string{top}) {
					fields = append(fields, field)
				}
			}
			for _, field := range fields {
				if count++; !schema.has(strings.Split(field, ".")) && !ofOthers[field] {
					t.Errorf("%s names %s, which the job file does not have: %q", folder, field, text)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d fields are named", count)
	}
}
