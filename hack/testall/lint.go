package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lint runs golangci-lint over the packages that changed since they last passed on this machine.
func lint(ctx context.Context, root string, o options) error {
	rec, err := openRecord()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("list the packages: %w", err)
	}
	var changed []string
	hashes := map[string]string{}
	for dir := range strings.Lines(string(out)) {
		rel, err := filepath.Rel(root, strings.TrimSpace(dir))
		if err != nil {
			return err
		}
		pkg := "./" + filepath.ToSlash(rel)
		if hashes[pkg], err = packageHash(root, rel); err != nil {
			return err
		}
		if o.all || rec.Linted[pkg] != hashes[pkg] {
			changed = append(changed, pkg)
		}
	}
	fmt.Printf("linting %d of %d packages, which changed since they last passed (ALL=1 lints all)\n", len(changed),
		len(hashes))
	if len(changed) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, "golangci-lint", append([]string{"run"}, changed...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("golangci-lint: %w", err)
	}
	return rec.update(func() { rec.Linted = hashes })
}

// packageHash returns the hash of a package's own files and of the settings of the linters.
func packageHash(root, folder string) (string, error) {
	h := sha256.New()
	for _, settings := range []string{".golangci.yml", "go.mod"} {
		if err := hashInto(h, root, settings, true); err != nil {
			return "", err
		}
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		rel, err := filepath.Rel(root, f)
		if err != nil {
			return "", err
		}
		if err := hashInto(h, root, rel, true); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
