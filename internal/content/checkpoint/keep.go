package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
)

// kept is the home of the parts of outputs, which no prune touches.
const kept = "kept"

// Keep stores the named folders and files below a folder as outputs called name, replacing earlier outputs of that
// name. It leaves out missing folders, and what cannot be kept, which Stats names. Nothing should write to them
// meanwhile; otherwise Keep returns ErrChanged.
func (s *Store) Keep(ctx context.Context, base confined.Folder, folders []string, name string) (format.Manifest, Stats,
	error) {
	begin := time.Now()
	m, stats, err := s.keep(ctx, base, folders, name)
	if err != nil {
		return format.Manifest{}, Stats{}, fmt.Errorf("keep outputs %s: %w", name, err)
	}
	stats.Took = time.Since(begin)
	return m, stats, nil
}

func (s *Store) keep(ctx context.Context, base confined.Folder, folders []string, name string) (_ format.Manifest,
	_ Stats,
	err error) {
	if err := checkName(name); err != nil {
		return format.Manifest{}, Stats{}, err
	}
	tree, err := base.Open()
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	sources, left, err := folder.Gather(tree, base.Path, folders)
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	known, err := s.keptParts(ctx, name, versions)
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	up := &upload{store: s, home: kept, known: known}
	files, err := up.all(ctx, sources)
	if err == nil {
		err = folder.Unchanged(sources)
	}
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	m := format.Manifest{Form: format.Version, Writer: rand.Text(), Published: time.Now().UTC(), Bytes: up.stats.Bytes,
		Files: format.Untagged(files)}
	seq := 1
	if len(versions) > 0 {
		seq = versions[0] + 1
	}
	for ; ; seq++ {
		m.Name = outputName(name, seq)
		data, err := format.Seal(m)
		if err != nil {
			return format.Manifest{}, Stats{}, err
		}
		err = s.putOnce(ctx, "outputs/"+m.Name, data)
		if err == nil {
			up.stats.Left = left
			return m, up.stats, nil
		}
		if !errors.Is(err, errTaken) {
			return format.Manifest{}, Stats{}, err
		}
	}
}

// keptParts returns the parts of the newest readable version. Parts of outputs are never dropped, so new outputs may
// refer to existing ones.
func (s *Store) keptParts(ctx context.Context, name string, versions []int) (map[string]format.Part, error) {
	known := map[string]format.Part{}
	for _, v := range versions {
		m, err := s.output(ctx, name, v)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		for _, p := range m.Parts() {
			if a, err := s.bucket.Attributes(ctx, s.prefix+p.Key()); err == nil && a.Size == p.Size {
				known[p.Sum] = p
			}
		}
		if err == nil {
			break
		}
	}
	return known, nil
}

// Fetch writes the outputs called name to folder dir, which must be empty or missing. It returns ErrNone if no
// outputs have that name.
func (s *Store) Fetch(ctx context.Context, name, dir string) (format.Manifest, error) {
	m, err := s.fetchOutput(ctx, name, dir)
	if err != nil {
		return format.Manifest{}, fmt.Errorf("fetch outputs %s to %s: %w", name, dir, err)
	}
	return m, nil
}

// OutputNames lists the names of all outputs.
func (s *Store) OutputNames(ctx context.Context) ([]string, error) {
	all, err := s.list(ctx, "outputs")
	for i, at := range all {
		all[i] = path.Dir(at)
	}
	return slices.Compact(all), err
}

// Outputs returns the newest readable manifest of the outputs called name, or ErrNone.
func (s *Store) Outputs(ctx context.Context, name string) (m format.Manifest, err error) {
	if err := checkName(name); err != nil {
		return m, err
	}
	versions, err := s.versions(ctx, name)
	if err == nil && len(versions) == 0 {
		err = ErrNone
	}
	for _, v := range versions {
		if m, err = s.output(ctx, name, v); err == nil || !errors.Is(err, ErrDamaged) {
			break
		}
	}
	if err != nil {
		return format.Manifest{}, fmt.Errorf("look at outputs %s: %w", name, err)
	}
	return m, nil
}

func (s *Store) fetchOutput(ctx context.Context, name, dir string) (format.Manifest, error) {
	if err := checkName(name); err != nil {
		return format.Manifest{}, err
	}
	held, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return format.Manifest{}, err
	}
	if len(held) > 0 {
		return format.Manifest{}, errors.New("the folder is not empty: name an empty or a new one")
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return format.Manifest{}, err
	}
	if len(versions) == 0 {
		return format.Manifest{}, ErrNone
	}
	for _, v := range versions {
		var m format.Manifest
		m, err = s.output(ctx, name, v)
		if err == nil {
			err = s.fetch(ctx, m, filepath.Clean(dir))
		}
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, ErrDamaged) {
			break
		}
	}
	return format.Manifest{}, err
}

func outputName(name string, seq int) string { return fmt.Sprintf("%s/%06d", name, seq) }

func (s *Store) output(ctx context.Context, name string, seq int) (format.Manifest, error) {
	at := outputName(name, seq)
	data, err := s.read(ctx, "outputs/"+at)
	if err != nil {
		return format.Manifest{}, err
	}
	return format.Decode(at, data)
}

// versions returns the sequence numbers of the outputs called name, newest first.
func (s *Store) versions(ctx context.Context, name string) ([]int, error) {
	names, err := s.list(ctx, "outputs/"+name)
	var all []int
	for _, n := range slices.Backward(names) {
		if seq, err := strconv.Atoi(n); err == nil {
			all = append(all, seq)
		}
	}
	return all, err
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\") || !filepath.IsLocal(name) || name == "." {
		return fmt.Errorf("%q is not a name", name)
	}
	return nil
}

// ErrFolder says that what is to be kept cannot be listed; a retry is useless.
var ErrFolder = folder.ErrFolder
