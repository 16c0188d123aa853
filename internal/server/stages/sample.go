package stages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"scrimp/internal/server/workdir"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/sample"
)

// filesOf returns the files among items in the form of a sample.
func filesOf(items []workdir.Item) (files []sample.File) {
	for _, i := range items {
		if !i.Mode.IsDir() {
			files = append(files, sample.File{Path: i.Path, Digest: cmp.Or(i.Sum, i.Name),
				Plain: i.Mode.IsRegular() && i.Mode&0o100 == 0})
		}
	}
	return files
}

// madeBy returns the paths that stages make.
func madeBy(p *pipeline.Spec) map[string]bool {
	made := map[string]bool{}
	for i := range p.Stages {
		for _, o := range p.Stages[i].Outs {
			made[o] = true
		}
	}
	return made
}

// inOuts reports whether a path is one that a stage makes, or lies in one.
func inOuts(made map[string]bool, p string) bool {
	for up := p; up != "." && up != "/"; up = path.Dir(up) {
		if made[up] {
			return true
		}
	}
	return false
}

// Sampled returns the inputs of which the samples of a pipeline take a part. sent is its work folder. The error says
// which data has no part.
func Sampled(p *pipeline.Spec, sent []workdir.Item) (list []sample.Input, err error) {
	made, files := madeBy(p), filesOf(sent)
	paths := p.Data
	if len(paths) == 0 {
		for i := range p.Stages {
			paths = append(paths, p.Stages[i].Deps...)
		}
		slices.Sort(paths)
		paths = slices.Compact(paths)
	}
	for _, at := range paths {
		if inOuts(made, at) { // known once the stage has run
			continue
		}
		for _, in := range sample.Inputs(files, []string{at}, len(p.Data) > 0) {
			if in.How == sample.All && len(p.Data) > 0 {
				return nil, noPart(in.Path)
			}
			if in.How != sample.All && !inOuts(made, in.Path) {
				list = append(list, in)
			}
		}
	}
	if len(list) == 0 && !slices.ContainsFunc(p.Data, func(d string) bool { return inOuts(made, d) }) {
		return nil, errors.New("no input has a part: name the data in sample.data; a sample takes rows of .csv, .tsv, " +
			".jsonl and .ndjson files, and files of folders with 20 or more")
	}
	return list, nil
}

// noPart says that an input that is declared as data has no part.
func noPart(p string) error {
	return fmt.Errorf("%s has no part: a sample takes rows of .csv, .tsv, .jsonl and .ndjson files, and files of folders "+
		"with 20 or more; take it out of sample.data", p)
}

// part returns the work folder of a stage on a part of the data: items with the part of each input in its place. sent
// holds the files that were sent with the pipeline. The share sums the rows and files of all inputs that the stage
// reads.
func (f *Files) part(ctx context.Context, p *pipeline.Spec, stage *pipeline.Stage, sent, items []workdir.Item) (
	list []workdir.Item, taken sample.Share, err error) {
	share, err := sample.Parse(stage.Sample)
	if err != nil {
		return nil, taken, err
	}
	inputs, err := Sampled(p, sent)
	if err != nil {
		return nil, taken, err
	}
	made, files := madeBy(p), filesOf(items)
	for _, at := range p.Data {
		here := func(i workdir.Item) bool { return below([]string{at}, i.Path) }
		if !inOuts(made, at) || !slices.ContainsFunc(items, here) {
			continue
		}
		for _, in := range sample.Inputs(files, []string{at}, true) {
			if in.How == sample.All {
				return nil, taken, noPart(in.Path)
			}
			inputs = append(inputs, in)
		}
	}
	for _, in := range inputs {
		var got sample.Share
		if items, got, err = f.partOf(ctx, share, in, stage, items); err != nil {
			return nil, taken, fmt.Errorf("take %s of %s: %w", share.Percent(), in.Path, err)
		}
		taken.Taken, taken.Of = taken.Taken+got.Taken, taken.Of+got.Of
	}
	return items, taken, nil
}

// partOf puts the part of one input in its place. It leaves out an input that the stage does not read, so that a
// sample never has all of the data.
func (f *Files) partOf(ctx context.Context, share sample.Part, in sample.Input, stage *pipeline.Stage,
	items []workdir.Item) (kept []workdir.Item, taken sample.Share, err error) {
	reads := stage.Takes(in.Path)
	chosen := map[string]bool{}
	if reads && in.How == sample.Files {
		chosen = sample.Chosen(share, filesOf(items), in.Path)
	}
	for _, i := range items {
		switch {
		case i.Mode.IsDir() || i.Path != in.Path && !strings.HasPrefix(i.Path, in.Path+"/"):
		case !reads:
			continue
		case in.How == sample.Files:
			taken.Of++
			if !chosen[i.Path] {
				continue
			}
			taken.Taken++
		case in.How == sample.Rows:
			if i, taken, err = f.someRows(ctx, i, share); err != nil {
				return nil, taken, err
			}
		}
		kept = append(kept, i)
	}
	return kept, taken, nil
}

// someRows returns a file with the rows that the part takes.
func (f *Files) someRows(ctx context.Context, i workdir.Item, part sample.Part) (workdir.Item, sample.Share, error) {
	content, file := i.Content, i.Path
	var taken sample.Share
	if sum := i.Sum; sum != "" {
		content = func(to io.Writer) error {
			from, err := f.Folders.Open(sum)
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }() // only read
			_, err = io.Copy(to, from)
			return err
		}
	}
	i.Content = func(to io.Writer) error {
		from, into := io.Pipe()
		go func() { _ = into.CloseWithError(content(into)) }()
		defer func() { _ = from.Close() }()
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		taken, err = sample.CopyRows(to, from, file, part)
		return err
	}
	hash := sha256.New()
	size := &counter{}
	if err := i.Content(io.MultiWriter(hash, size)); err != nil {
		return i, taken, err
	}
	share := taken // Content runs again, maybe beside others
	i.Sum, i.Name, i.Size = "", hex.EncodeToString(hash.Sum(nil)), size.n
	return i, share, nil
}

// CheckRows refuses files without a row among the inputs of a sample that were sent with the pipeline.
func CheckRows(folders *workdir.Store, inputs []sample.Input, sent []workdir.Item) error {
	for _, in := range inputs {
		at := slices.IndexFunc(sent, func(i workdir.Item) bool { return i.Path == in.Path })
		if in.How != sample.Rows || at < 0 || sent[at].Sum == "" {
			continue
		}
		from, err := folders.Open(sent[at].Sum)
		if err != nil {
			return err
		}
		err = sample.CheckRows(from, in.Path)
		if err := errors.Join(err, from.Close()); err != nil {
			return err
		}
	}
	return nil
}

// counter counts bytes.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
