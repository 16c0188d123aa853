package scaffold

import (
	"path"
	"regexp"
	"strings"

	"scrimp/internal/job/scaffold/pycall"
)

// maxDepth bounds the depth to which Python expressions are followed.
const maxDepth = 8

// values evaluates Python expressions as far as the script determines them.
type values struct{ text, file string }

var (
	number = regexp.MustCompile(`^[\d_]+(?:\.\d*)?(?:e[+-]?\d+)?$`)
	name   = regexp.MustCompile(`^[A-Za-z_]\w*$`)
	called = regexp.MustCompile(`^([A-Za-z_][\w.]*)\(`)
	// same matches calls that do not change the folder relative to the work folder.
	same = regexp.MustCompile(`^(.*)\.(?:resolve|absolute|as_posix|strip)\(\)$`)
)

// of returns the value of expr. If only its leading folder is known, as in f"runs/{name}", whole is false. An empty
// text is unknown.
func (v values) of(expr string) (text string, whole bool) { return v.value(expr, 0) }

func (v values) value(expr string, depth int) (text string, whole bool) {
	if expr = strings.TrimSpace(expr); depth > maxDepth || expr == "" || expr == "None" {
		return "", false
	}
	if list := operands(expr, '/'); len(list) > 1 {
		return v.joined(list, depth)
	}
	if list := operands(expr, '+'); len(list) > 1 {
		return v.chained(list, depth)
	}
	switch m := pycall.Prefix.FindString(expr); {
	case m != "":
		return v.quoted(expr, m, depth)
	case number.MatchString(expr):
		return expr, true
	case expr == "__file__":
		return v.file, true
	case name.MatchString(expr):
		m := regexp.MustCompile(`(?m)^` + expr + `\s*(?::[^=\n]+)?=([^=\n#][^\n#]*)`).FindStringSubmatch(v.text)
		if m == nil {
			return "", false
		}
		return v.value(m[1], depth+1)
	case strings.HasSuffix(expr, ".parent"):
		text, whole = v.value(strings.TrimSuffix(expr, ".parent"), depth+1)
		return folderOf(text), whole && text != ""
	}
	if m := same.FindStringSubmatch(expr); m != nil {
		return v.value(m[1], depth+1)
	}
	return v.call(expr, depth)
}

// quoted evaluates a string literal, including its braces.
func (v values) quoted(expr, start string, depth int) (text string, whole bool) {
	content, end, ok := pycall.Literal(expr, len(start)-1)
	if !ok || end != len(expr) {
		return "", false
	}
	if !strings.ContainsAny(start, "fF") {
		return content, true
	}
	for _, p := range pycall.Braces(content, nil) {
		known, all := p.Text, true
		if p.Expr {
			known, all = v.value(p.Text, depth+1)
		}
		if text += known; !all {
			return begins(text), false
		}
	}
	return text, true
}

// call evaluates a function of paths or of the environment.
func (v values) call(expr string, depth int) (text string, whole bool) {
	m := called.FindStringSubmatch(expr)
	if m == nil {
		return "", false
	}
	args, end, ok := pycall.Arguments(expr, len(m[0]))
	if !ok || end != len(expr) || len(args) == 0 {
		if strings.HasSuffix(m[1], "getcwd") || strings.HasSuffix(m[1], "Path.cwd") {
			return ".", true
		}
		return "", false
	}
	switch m[1] {
	case "Path", "pathlib.Path", "PurePath", "os.path.join", "path.join", "osp.join", "join":
		return v.joined(args, depth)
	case "str", "os.fspath", "os.path.abspath", "os.path.realpath", "os.path.normpath", "int", "float":
		return v.value(args[0], depth+1)
	case "os.path.dirname", "dirname", "osp.dirname":
		text, whole = v.value(args[0], depth+1)
		return folderOf(text), whole
	case "os.environ.get", "os.getenv", "environ.get", "getenv":
		if len(args) > 1 {
			return v.value(args[1], depth+1)
		}
	}
	return "", false
}

// folderOf returns the folder of a path, or "" if it is unknown.
func folderOf(text string) string {
	if text == "" {
		return ""
	}
	return path.Dir(text)
}

// joined joins the parts of a path, up to the first unknown part.
func (v values) joined(list []string, depth int) (text string, whole bool) {
	for _, expr := range list {
		part, all := v.value(expr, depth+1)
		if strings.HasPrefix(part, "/") { // an absolute part replaces the path
			text = ""
		}
		if text = path.Join(text, part); !all {
			return text, false
		}
	}
	return text, true
}

// chained concatenates texts, or returns the leading folder of the result.
func (v values) chained(list []string, depth int) (text string, whole bool) {
	for _, expr := range list {
		part, all := v.value(expr, depth+1)
		if text += part; !all {
			return begins(text), false
		}
	}
	return text, true
}

// begins returns the leading folder of a text with an unknown end.
func begins(text string) string { return text[:strings.LastIndexByte(text, '/')+1] }

// operands splits an expression at an operator outside of brackets and strings.
func operands(expr string, operator byte) (list []string) {
	depth, begin := 0, 0
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; c {
		case '"', '\'':
			_, end, ok := pycall.Literal(expr, i)
			if !ok {
				return nil
			}
			i = end - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case operator:
			if depth == 0 {
				list, begin = append(list, expr[begin:i]), i+1
			}
		}
	}
	return append(list, expr[begin:])
}
