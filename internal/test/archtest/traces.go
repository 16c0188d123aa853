package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
)

// traces are patterns that reveal the machine on which a file was written. Each is in two halves, so that this file
// contains none.
var traces = []string{
	"/ho" + "me/", "/Us" + "ers/", "/ro" + "ot/", `C:\Us` + "ers",
	"proxy.go" + "lang", "sum.go" + "lang", "registry.n" + "pm", "pypi" + ".org", "deb.deb" + "ian",
	"files.python" + "hosted",
}

// Traces returns every text file below fsys that contains a path of the author's machine or the host of a package
// registry. also has further patterns, such as the path of this checkout.
func Traces(fsys fs.FS, also ...string) (problems []string, err error) {
	patterns := slices.Concat(traces, also)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return nil // not a text file
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			for _, p := range patterns {
				if bytes.Contains(line, []byte(p)) {
					problems = append(problems,
						fmt.Sprintf("%s:%d names %s: a path or a registry of one machine; say it in a way that holds on every machine",
							name, i+1, p))
				}
			}
		}
		return nil
	})
	return problems, err
}
