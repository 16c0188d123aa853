// Command dist builds the release files: archives with checksums and a bill of materials, Debian packages and
// container images. The same commit always gives the same bytes. It needs nothing but Go.
//
//	go run ./hack/dist                        # everything, into dist/
//	go run ./hack/dist -platforms linux/amd64 # for one platform
//	go run ./hack/dist -install /usr/local -program build/scrimp  # a built program, its man pages and completions
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/cli"
	"scrimp/internal/test/image"
)

func main() {
	r := release{Certs: "/etc/ssl/certs/ca-certificates.crt"}
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "`list` of OS/ARCH")
	install := flag.String("install", "", "write -program, man pages and completions below `folder`")
	program := flag.String("program", "", "`file` that -install installs")
	flag.StringVar(&r.Out, "out", "dist", "`folder` to write to")
	flag.StringVar(&r.Version, "version", "", "version (default: that of the changelog, or of the commit)")
	flag.StringVar(&r.Tags, "tags", "", "build tags; local leaves object stores out")
	flag.Parse()
	if err := run(context.Background(), r, strings.Split(*platforms, ","), *install, *program); err != nil {
		fmt.Fprintln(os.Stderr, "dist: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, r release, platforms []string, install, program string) error {
	root, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	r.Root = filepath.Dir(strings.TrimSpace(string(root)))
	changes, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if r.Version == "" {
		commit := r.git(ctx, "rev-parse", "--short=12", "HEAD")
		if commit != "" && r.git(ctx, "status", "--porcelain", "--untracked-files=no") != "" {
			commit += ".changed"
		}
		r.Version = versionOf(string(changes), commit)
	}
	if r.When, err = whenOf(os.Getenv("SOURCE_DATE_EPOCH"), r.git(ctx, "log", "-1", "--format=%ct")); err != nil {
		return err
	}
	if install != "" {
		return r.install(install, program)
	}
	return r.all(ctx, platforms)
}

// release describes what to build, and from what.
type release struct {
	Root, Out     string
	Version, Tags string
	When          time.Time // of all files in it
	Certs         string    // certificates of authorities for images; empty: images have none
}

// git returns the output of git in the folder; empty if there is no repository.
func (r release) git(ctx context.Context, args ...string) string {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.Root
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

var heading = regexp.MustCompile(`(?m)^## (\S+)`)

// versionOf returns the newest version in the changelog or, before the first release, the program's own version with
// the commit.
func versionOf(changes, commit string) string {
	m := heading.FindStringSubmatch(changes)
	switch {
	case m != nil && m[1][0] >= '0' && m[1][0] <= '9':
		return m[1]
	case commit != "":
		return cli.Version + "+" + commit
	}
	return cli.Version
}

// whenOf returns SOURCE_DATE_EPOCH or the time of the commit; 1980 if there is neither.
func whenOf(epoch, commit string) (time.Time, error) {
	for _, text := range []string{epoch, commit} {
		if text == "" {
			continue
		}
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("read the time of the sources: %w", err)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), nil
}

// build compiles the program for a platform into file.
func (r release) build(ctx context.Context, platform, file string) error {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("%q is not a platform such as linux/amd64", platform)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", r.Tags,
		"-ldflags", "-s -w -buildid= -X scrimp/internal/cli.Version="+r.Version, "-o", file, "./cmd/scrimp")
	cmd.Dir, cmd.Stderr = r.Root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+arch)
	if arch == "amd64" {
		cmd.Env = append(cmd.Env, "GOAMD64=v1")
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", platform, err)
	}
	return nil
}

// install writes a built program, its man pages and completions below a folder such as /usr/local.
func (r release) install(folder, program string) error {
	body, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program to install (-program): %w", err)
	}
	list, err := r.manual()
	if err != nil {
		return err
	}
	for _, f := range append(list, image.File{Path: "bin/scrimp", Body: body, Mode: 0o755}) {
		to := filepath.Join(folder, f.Path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		// Write under a temporary name and rename: the replaced program may be running.
		if err := os.WriteFile(to+".new", f.Body, cmp.Or(fs.FileMode(f.Mode), 0o644)); err != nil {
			return err
		}
		if err := os.Rename(to+".new", to); err != nil {
			return err
		}
	}
	fmt.Printf("Installed %s as %s, with %d man pages and 3 completions.\n", program,
		filepath.Join(folder, "bin", "scrimp"), len(list)-3)
	return nil
}

// all builds everything for the platforms.
func (r release) all(ctx context.Context, platforms []string) error {
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return err
	}
	var sums []string
	for _, platform := range platforms {
		made, err := r.one(ctx, platform)
		if err != nil {
			return err
		}
		for _, f := range made {
			if err := os.WriteFile(filepath.Join(r.Out, f.Path), f.Body, 0o644); err != nil {
				return err
			}
			sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(f.Body), f.Path))
			fmt.Printf("%s/%s  %.1f MB\n", r.Out, f.Path, float64(len(f.Body))/1e6)
		}
	}
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	to := filepath.Join(r.Out, "SHA256SUMS")
	return os.WriteFile(to, []byte(strings.Join(sums, "")), 0o644)
}

// one builds everything for a platform.
func (r release) one(ctx context.Context, platform string) (made []image.File, err error) {
	folder, err := os.MkdirTemp("", "scrimp-dist-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "scrimp")
	if err := r.build(ctx, platform, binary); err != nil {
		return nil, err
	}
	bill, err := r.bill(binary, platform)
	if err != nil {
		return nil, err
	}
	p := parts{release: r, arch: platform[strings.IndexByte(platform, '/')+1:]}
	if p.binary, err = os.ReadFile(binary); err != nil {
		return nil, err
	}
	if p.manual, err = r.manual(); err != nil {
		return nil, err
	}
	stem := "scrimp-" + r.Version + "-" + strings.ReplaceAll(platform, "/", "-")
	archive, err := p.archive(stem)
	if err != nil {
		return nil, err
	}
	made = []image.File{{Path: stem + ".tar.gz", Body: archive}, {Path: stem + ".spdx.json", Body: bill}}
	if !strings.HasPrefix(platform, "linux/") {
		return made, nil
	}
	deb, err := p.debian()
	if err != nil {
		return nil, err
	}
	container, err := p.image()
	if err != nil {
		return nil, err
	}
	return append(made, image.File{Path: fmt.Sprintf("scrimp_%s_%s.deb", debianVersion(r.Version), p.arch), Body: deb},
		image.File{Path: stem + ".oci.tar", Body: container}), nil
}

// parts are the inputs of a platform's packages.
type parts struct {
	release
	arch   string
	binary []byte
	manual []image.File
}
