package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // a Debian package has these sums; nothing trusts them
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// debianVersion orders what comes before a release before it: 0.1.0-dev is 0.1.0~dev.
func debianVersion(version string) string { return strings.ReplaceAll(version, "-", "~") }

// debian is the package for Debian: an ar archive of its form, its control files and its files.
func (p parts) debian() ([]byte, error) {
	files, err := p.debianFiles()
	if err != nil {
		return nil, err
	}
	size, sums := 0, ""
	for _, f := range files {
		size += len(f.body)
		sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.body), f.name) //nolint:gosec // likewise
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
	var members []entry
	for _, part := range []struct {
		name string
		list []entry
	}{
		{"control.tar.gz", []entry{{name: "control", body: []byte(control)}, {name: "md5sums", body: []byte(sums)}}},
		{"data.tar.gz", files},
	} {
		all, err := tarball(part.list, "./", p.When)
		if err == nil {
			all, err = compress(all)
		}
		if err != nil {
			return nil, err
		}
		members = append(members, entry{name: part.name, body: all})
	}
	return ar(append([]entry{{name: "debian-binary", body: []byte("2.0\n")}}, members...), p.When), nil
}

// debianFiles are the program and its manual where Debian has them.
func (p parts) debianFiles() ([]entry, error) {
	list := []entry{{name: "usr/bin/scrimp", body: p.binary, mode: 0o755}}
	for _, f := range p.manual {
		f.name = "usr/" + strings.Replace(f.name, "share/zsh/site-functions", "share/zsh/vendor-completions", 1)
		if strings.HasSuffix(f.name, ".1") {
			packed, err := compress(f.body)
			if err != nil {
				return nil, err
			}
			f.name, f.body = f.name+".gz", packed
		}
		list = append(list, f)
	}
	for from, to := range map[string]string{"LICENSE": "copyright", "CHANGELOG.md": "changelog.gz"} {
		text, err := os.ReadFile(filepath.Join(p.Root, from))
		if err == nil && strings.HasSuffix(to, ".gz") {
			text, err = compress(text)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, entry{name: "usr/share/doc/scrimp/" + to, body: text})
	}
	sortByName(list)
	return list, nil
}

// ar is an archive in the form that dpkg reads.
func ar(members []entry, when time.Time) []byte {
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, when.Unix(), 0, 0, 0o100644, len(m.body))
		out.Write(m.body)
		if len(m.body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}
