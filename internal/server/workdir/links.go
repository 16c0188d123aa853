package workdir

import (
	"archive/tar"
	"errors"
	"fmt"
	"path"
	"strings"

	"scrimp/internal/server/workdir/pack"
)

// Limits on following links. Links through one another could otherwise keep a processor busy for minutes.
const (
	mostHops  = 40        // links on one path, as on Linux
	mostSteps = 4_000_000 // names, over all links of a folder
)

// errLeadsOut returns the error for a link that leads out of the folder.
func errLeadsOut(name, target string) error {
	if name == pack.IgnoreName {
		return fmt.Errorf("%s is a link to %s, which leads out of the folder: it must be a file", pack.IgnoreName,
			quote(target))
	}
	return fmt.Errorf("%s is a link to %s, which leads out of the folder: copy what it leads to, or leave it out with "+
		".scrimpignore", quote(name), quote(target))
}

// errLinks means that the links of a folder lead through too many others.
var errLinks = errors.New("the links of the folder lead through too many others: copy what they lead to")

// checkLinks refuses a folder with a link that leads out of it, even through other links: the text of a path with
// links does not show where it ends.
func (t *tree) checkLinks() error {
	steps := mostSteps
	for name, e := range t.entries {
		if e.kind != tar.TypeSymlink {
			continue
		}
		out, err := t.leadsOutside(name, e.link, &steps)
		if err != nil {
			return err
		}
		if out {
			return errLeadsOut(name, e.link)
		}
	}
	return nil
}

// leadsOutside reports whether a link leads out of the folder. It follows the link name by name, as the machine's
// kernel will. A link to an absolute path refers to the machine; another check decides whether it may.
func (t *tree) leadsOutside(name, target string, steps *int) (out bool, err error) {
	at := names(path.Dir(name))
	next, hops := names(target), 0
	if *steps -= len(next); *steps < 0 {
		return false, errLinks
	}
	for len(next) > 0 {
		part := next[0]
		next = next[1:]
		if part == ".." {
			if len(at) == 0 {
				return true, nil
			}
			at = at[:len(at)-1]
			continue
		}
		if at = append(at, part); len(at) > deepest+1 {
			continue // the folder has nothing that deep
		}
		e := t.entries[strings.Join(at, "/")]
		if e == nil || e.kind != tar.TypeSymlink {
			continue
		}
		if hops++; hops > mostHops || path.IsAbs(e.link) {
			return false, nil // it leads nowhere, or to a path of the machine
		}
		at = at[:len(at)-1]
		next = append(names(e.link), next...)
		if *steps -= len(next); *steps < 0 {
			return false, errLinks
		}
	}
	return false, nil
}

// names splits a path.
func names(of string) (list []string) {
	for part := range strings.SplitSeq(of, "/") {
		if part != "" && part != "." {
			list = append(list, part)
		}
	}
	return list
}
