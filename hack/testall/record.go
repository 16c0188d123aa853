package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/test/lane"
)

// A record holds what the component lane knows of earlier runs on this machine. It is beside the cached tools,
// outside the repository; without it every suite runs.
type record struct {
	folder string
	Suites map[string]suiteRun
	Flaky  map[string][]time.Time // when a test failed once and then passed in a separate run
	Linted map[string]string      // hash of each package when the linters last passed it
}

// A suiteRun is the last run of a suite.
type suiteRun struct {
	When    time.Time
	Seconds float64
	Green   string // hash of the inputs of the last run that passed; "": the last run failed
}

// openRecord reads the record, which is empty on a machine that has none.
func openRecord() (*record, error) {
	folder := os.Getenv("SCRIMP_TOOLS")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the folder of the record: %w", err)
		}
		folder = filepath.Join(cache, "scrimp-ci")
	}
	r := &record{folder: folder}
	if err := r.read(); err != nil {
		return nil, err
	}
	return r, nil
}

// read replaces r by the version on disk.
func (r *record) read() error {
	*r = record{folder: r.folder, Suites: map[string]suiteRun{}, Flaky: map[string][]time.Time{}}
	text, err := os.ReadFile(r.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, r); err != nil {
		fmt.Printf("%s cannot be read, so every suite runs: %v\n", r.path(), err)
		*r = record{folder: r.folder, Suites: map[string]suiteRun{}, Flaky: map[string][]time.Time{}}
	}
	return nil
}

func (r *record) path() string { return filepath.Join(r.folder, "testall.json") }

// update changes the record on disk, and r with it. Two runs may update it at once: the linters and the suites. It
// writes a temporary file and renames it, so that a killed run leaves the old one.
func (r *record) update(change func()) error {
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	lock, err := os.Create(r.path() + ".lock")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // also unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the record: %w", err)
	}
	if err := r.read(); err != nil {
		return err
	}
	change()
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	aside := r.path() + ".new"
	if err := os.WriteFile(aside, text, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, r.path())
}

// done notes that a suite has run.
func (r *record) done(s dueSuite, took time.Duration, res *results) error {
	run := suiteRun{When: time.Now().UTC(), Seconds: took.Seconds()}
	if len(res.failed())+len(res.broken) == 0 && missing(res) == nil {
		run.Green = s.hash
	}
	return r.update(func() { r.Suites[s.Name] = run })
}

// flaky notes that a test failed and then passed, and returns how often that has happened.
func (r *record) flaky(test string) string {
	if err := r.update(func() { r.Flaky[test] = append(r.Flaky[test], time.Now().UTC()) }); err != nil {
		fmt.Println("cannot write the record:", err)
	}
	n := len(r.Flaky[test])
	return fmt.Sprintf("%d times so far, first on %s", n, r.Flaky[test][0].Format(time.DateOnly))
}

// keepLog writes what a failed test printed to a file beside the record and returns its path.
func (r *record) keepLog(test, failure string) string {
	path := filepath.Join(r.folder, "flaky", test+"-"+time.Now().UTC().Format("20060102-150405")+".log")
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(failure), 0o600)
	}
	if err != nil {
		return "lost (" + err.Error() + ")"
	}
	return path
}

// inputs returns the hash of everything that determines a suite's result: its inputs without their tests, and the
// folders of its own tests including the tests.
func inputs(root string, s lane.Suite, tests selection) (string, error) {
	h := sha256.New()
	for _, p := range slices.Sorted(slices.Values(s.Inputs)) {
		if err := hashInto(h, root, p, false); err != nil {
			return "", fmt.Errorf("hash the inputs of a suite: %w", err)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		if err := hashInto(h, root, strings.TrimPrefix(pkg, "./"), true); err != nil {
			return "", fmt.Errorf("hash the tests of a suite: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashInto writes the names and contents of the files below a place to h.
func hashInto(h io.Writer, root, place string, tests bool) error {
	return filepath.WalkDir(filepath.Join(root, place), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !tests && strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		_, err = fmt.Fprintf(h, "%s %d\n%s\n", rel, len(text), text)
		return err
	})
}
