package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // Debian packages contain these sums; nothing trusts them
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scrimp/internal/test/image"
)

// debianVersion makes pre-releases sort before their release: 0.1.0-dev becomes 0.1.0~dev.
func debianVersion(version string) string { return strings.ReplaceAll(version, "-", "~") }

// debian returns the Debian package: an ar archive of its format, its control files and its files.
func (p parts) debian() ([]byte, error) {
	files, err := p.debianFiles()
	if err != nil {
		return nil, err
	}
	size, sums := 0, ""
	for _, f := range files {
		size += len(f.Body)
		sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.Body), f.Path) //nolint:gosec // likewise
	}
	control := fmt.Sprintf(`Package: scrimp
Version: %s
Architecture: %s
Maintainer: The scrimp authors <authors@scrimp.invalid>
Installed-Size: %d
Section: science
Priority: optional
Suggests: ca-certificates
Description: train on time for the least money
 Plans, runs, watches and accounts for ML training on capacity that can be
 interrupted, saves and resumes it, and buys on-demand only when the deadline
 asks for it.
`, debianVersion(p.Version), p.arch, (size+1023)/1024)
	var members []image.File
	for _, part := range []struct {
		name string
		list []image.File
	}{
		{"control.tar.gz", []image.File{{Path: "control", Body: []byte(control)}, {Path: "md5sums", Body: []byte(sums)}}},
		{"data.tar.gz", files},
	} {
		all, err := image.Tar(part.list, "./", p.When)
		if err == nil {
			all, err = image.Gzip(all)
		}
		if err != nil {
			return nil, err
		}
		members = append(members, image.File{Path: part.name, Body: all})
	}
	return ar(append([]image.File{{Path: "debian-binary", Body: []byte("2.0\n")}}, members...), p.When), nil
}

// debianFiles returns the program and its manual at Debian's paths.
func (p parts) debianFiles() ([]image.File, error) {
	list := []image.File{{Path: "usr/bin/scrimp", Body: p.binary, Mode: 0o755}}
	for _, f := range p.manual {
		f.Path = "usr/" + strings.Replace(f.Path, "share/zsh/site-functions", "share/zsh/vendor-completions", 1)
		if strings.HasSuffix(f.Path, ".1") {
			packed, err := image.Gzip(f.Body)
			if err != nil {
				return nil, err
			}
			f.Path, f.Body = f.Path+".gz", packed
		}
		list = append(list, f)
	}
	for from, to := range map[string]string{"LICENSE": "copyright", "CHANGELOG.md": "changelog.gz"} {
		text, err := os.ReadFile(filepath.Join(p.Root, from))
		if err == nil && strings.HasSuffix(to, ".gz") {
			text, err = image.Gzip(text)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, image.File{Path: "usr/share/doc/scrimp/" + to, Body: text})
	}
	sortByName(list)
	return list, nil
}

// ar returns an archive in the format that dpkg reads.
func ar(members []image.File, when time.Time) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.Path, when.Unix(), 0, 0, 0o100644, len(m.Body))
		out.Write(m.Body)
		if len(m.Body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
