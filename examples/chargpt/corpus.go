package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// corpus is the text as tokens, split into training and validation parts.
type corpus struct {
	train, val []byte
	hash       string // of names and contents, 16 hex digits: a resume with another text is refused
	files      int
	from       string
}

const (
	corpusLimit = 3 << 20 // bytes of text
	valPart     = 20      // the last twentieth of the text is held out
)

// packages are the packages read from a Go installation, in this order.
var packages = []string{
	"fmt", "strings", "bytes", "bufio", "errors", "io", "sort", "strconv", "time", "sync", "context",
	"net/http", "net/url", "os", "os/exec", "path/filepath", "encoding/json", "text/template", "flag", "log",
}

// corpusFiles returns the Go files of packages if root is a Go installation, otherwise every .go, .txt and .md file
// below root, sorted by name.
func corpusFiles(root string) (names []string, err error) {
	if s, err := os.Stat(filepath.Join(root, "src", "fmt")); err != nil || !s.IsDir() {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && slices.Contains([]string{".go", ".txt", ".md"}, filepath.Ext(name)) {
				names = append(names, name)
			}
			return err
		})
		slices.Sort(names)
		return names, err
	}
	for _, p := range packages {
		found, err := filepath.Glob(filepath.Join(root, "src", filepath.FromSlash(p), "*.go"))
		if err != nil {
			return nil, err
		}
		slices.Sort(found)
		for _, name := range found {
			if !strings.HasSuffix(name, "_test.go") {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// readCorpus reads the corpus of a Go installation or of a folder of text.
func readCorpus(root string) (*corpus, error) {
	names, err := corpusFiles(root)
	if err != nil {
		return nil, fmt.Errorf("list the corpus %s: %w", root, err)
	}
	c := &corpus{from: root}
	sum := sha256.New()
	var tokens []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the corpus: %w", err)
		}
		if len(tokens)+len(text) > corpusLimit {
			break
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, fmt.Errorf("read the corpus: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(rel), len(text))
		sum.Write(text)
		for _, b := range text {
			tokens = append(tokens, tokenOf(b))
		}
		c.files++
	}
	c.hash = hex.EncodeToString(sum.Sum(nil)[:8])
	cut := len(tokens) - len(tokens)/valPart
	c.train, c.val = tokens[:cut], tokens[cut:]
	if len(c.val) < 2*(size.Context+1) {
		return nil, fmt.Errorf("the corpus %s has %d characters in .go, .txt and .md files, too few to learn from: name "+
			"a Go installation or a folder of text with --corpus", root, len(tokens))
	}
	return c, nil
}

// vocabulary counts newline, tab, the printable ASCII characters, and one for everything else.
const vocabulary = 2 + 95 + 1

func tokenOf(b byte) byte {
	switch {
	case b == '\n':
		return 0
	case b == '\t':
		return 1
	case b >= ' ' && b <= '~':
		return b - ' ' + 2
	}
	return vocabulary - 1
}

func characterOf(t byte) byte {
	switch {
	case t == 0:
		return '\n'
	case t == 1:
		return '\t'
	case t < vocabulary-1:
		return t - 2 + ' '
	}
	return '?'
}

// findCorpus returns the folder named by the flag, or the Go installation.
func findCorpus(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	candidates := []func() string{
		func() string { return os.Getenv("GOROOT") },
		func() string {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(out))
		},
		runtime.GOROOT, //nolint:staticcheck // the last resort without a go command on the PATH
		func() string { return "/usr/local/go" },
		func() string { return "/usr/lib/go" },
	}
	for _, c := range candidates {
		root := c()
		if root == "" {
			continue
		}
		if s, err := os.Stat(filepath.Join(root, "src", "fmt")); err == nil && s.IsDir() {
			return root, nil
		}
	}
	return "", errors.New("no Go installation with its sources was found: set GOROOT, or name one or a folder of text " +
		"with --corpus")
}
