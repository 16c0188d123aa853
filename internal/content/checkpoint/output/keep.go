// Package output keeps the outputs of jobs: named folders and files, each time as a new version, whose parts nothing
// drops.
package output

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
	"scrimp/internal/content/checkpoint/object"
	"scrimp/internal/lib/confined"
)

// Home is the home of the parts of outputs, which no prune touches.
const Home = "kept"

// ErrNone says that there is nothing to fetch.
var ErrNone = errors.New("there is none")

// Store holds the outputs of one job:
//
//	objects/kept/<sha256>  parts of outputs
//	outputs/<name>/<seq>   one manifest for each time outputs were kept
type Store struct{ objects *object.Store }

// Open returns the outputs that objects holds.
func Open(objects *object.Store) Store { return Store{objects} }

// Keep stores the named folders and files below a folder as outputs called name, replacing earlier outputs of that
// name. It leaves out missing folders, and what cannot be kept, which Stats names. Nothing should write to them
// meanwhile; otherwise Keep returns folder.ErrChanged.
func (s Store) Keep(ctx context.Context, base confined.Folder, folders []string, name string) (format.Manifest,
	object.Stats, error) {
	begin := time.Now()
	m, stats, err := s.keep(ctx, base, folders, name)
	if err != nil {
		return format.Manifest{}, object.Stats{}, fmt.Errorf("keep outputs %s: %w", name, err)
	}
	stats.Took = time.Since(begin)
	return m, stats, nil
}

func (s Store) keep(ctx context.Context, base confined.Folder, folders []string, name string) (_ format.Manifest,
	_ object.Stats, err error) {
	if err := checkName(name); err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	tree, err := base.Open()
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	sources, left, err := folder.Gather(tree, base.Path, folders)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	known, err := s.keptParts(ctx, name, versions)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	files, stats, err := s.objects.Upload(ctx, Home, known, sources)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	m := format.Manifest{Form: format.Version, Writer: rand.Text(), Published: time.Now().UTC(), Bytes: stats.Bytes,
		Files: format.Untagged(files)}
	seq := 1
	if len(versions) > 0 {
		seq = versions[0] + 1
	}
	for ; ; seq++ {
		m.Name = outputName(name, seq)
		data, err := format.Seal(m)
		if err != nil {
			return format.Manifest{}, object.Stats{}, err
		}
		err = s.objects.Create(ctx, "outputs/"+m.Name, data)
		if err == nil {
			stats.Left = left
			return m, stats, nil
		}
		if !errors.Is(err, object.ErrTaken) {
			return format.Manifest{}, object.Stats{}, err
		}
	}
}

// keptParts returns the parts of the newest readable version. Parts of outputs are never dropped, so new outputs may
// refer to existing ones.
func (s Store) keptParts(ctx context.Context, name string, versions []int) (map[string]format.Part, error) {
	known := map[string]format.Part{}
	for _, v := range versions {
		m, err := s.output(ctx, name, v)
		if err != nil && !errors.Is(err, format.ErrDamaged) {
			return nil, err
		}
		for _, p := range m.Parts() {
			if s.objects.Has(ctx, p) {
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
func (s Store) Fetch(ctx context.Context, name, dir string) (format.Manifest, error) {
	m, err := s.fetchOutput(ctx, name, dir)
	if err != nil {
		return format.Manifest{}, fmt.Errorf("fetch outputs %s to %s: %w", name, dir, err)
	}
	return m, nil
}

// OutputNames lists the names of all outputs.
func (s Store) OutputNames(ctx context.Context) ([]string, error) {
	all, err := s.objects.Names(ctx, "outputs")
	for i, at := range all {
		all[i] = path.Dir(at)
	}
	return slices.Compact(all), err
}

// Outputs returns the newest readable manifest of the outputs called name, or ErrNone.
func (s Store) Outputs(ctx context.Context, name string) (m format.Manifest, err error) {
	if err := checkName(name); err != nil {
		return m, err
	}
	versions, err := s.versions(ctx, name)
	if err == nil && len(versions) == 0 {
		err = ErrNone
	}
	for _, v := range versions {
		if m, err = s.output(ctx, name, v); err == nil || !errors.Is(err, format.ErrDamaged) {
			break
		}
	}
	if err != nil {
		return format.Manifest{}, fmt.Errorf("look at outputs %s: %w", name, err)
	}
	return m, nil
}

func (s Store) fetchOutput(ctx context.Context, name, dir string) (format.Manifest, error) {
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
			err = s.objects.Fetch(ctx, m, filepath.Clean(dir))
		}
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, format.ErrDamaged) {
			break
		}
	}
	return format.Manifest{}, err
}

func outputName(name string, seq int) string { return fmt.Sprintf("%s/%06d", name, seq) }

func (s Store) output(ctx context.Context, name string, seq int) (format.Manifest, error) {
	at := outputName(name, seq)
	data, err := s.objects.Read(ctx, "outputs/"+at)
	if err != nil {
		return format.Manifest{}, err
	}
	return format.Decode(at, data)
}

// versions returns the sequence numbers of the outputs called name, newest first.
func (s Store) versions(ctx context.Context, name string) ([]int, error) {
	names, err := s.objects.Names(ctx, "outputs/"+name)
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
