package exports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/client"
	"scrimp/internal/content/billfile"
	"scrimp/internal/content/blob"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/bills"
)

// round is one fetch of one export.
type round struct {
	f        *Fetcher
	s        *Source
	st       *state
	by       string
	bucket   *gocloud.Bucket
	imported int  // periods
	again    bool // a problem that another try may help
}

// Limits on a fetch.
const (
	mostObjects = 200_000
	mostBytes   = 8 << 30   // of the files of a period
	mostPeriods = 600       // 50 years
	reserve     = 512 << 20 // bytes of disk that stay free
	still       = 2 * time.Minute
)

// pauses are those between tries of the same request, after those of the provider's own SDK.
var pauses = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}

// tries calls do again while another try may help..
func (r *round) tries(ctx context.Context, do func(context.Context) error) error {
	for n := 0; ; n++ {
		err := do(ctx)
		if err == nil || n == len(pauses) || ctx.Err() != nil || lasting(err) {
			return err
		}
		if paused := r.f.Pause(ctx, pauses[n]); paused != nil {
			return err
		}
	}
}

// lasting reports whether another try at once is useless.
func lasting(err error) bool {
	var wrong *problem
	return errors.As(err, &wrong) || errors.Is(err, blob.ErrURL) || errors.Is(err, blob.ErrNone) || blob.Denied(err) ||
		blob.Missing(err) || gcerrors.Code(err) == gcerrors.PermissionDenied
}

// problem is what is wrong with an object.
type problem struct {
	key   string
	err   error
	again bool // another try may help
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// all lists the bucket and imports the periods that have changed.
func (r *round) all(ctx context.Context) error {
	var objects []object
	err := r.tries(ctx, func(ctx context.Context) (err error) {
		if r.bucket == nil {
			if r.bucket, err = r.f.Open(ctx, r.s.Export); err != nil {
				r.bucket = nil
				return err
			}
		}
		objects, err = r.list(ctx)
		return err
	})
	if r.bucket != nil {
		defer func() { _ = r.bucket.Close() }() // nothing was written
	}
	if err != nil {
		return err
	}
	found := groups(objects)
	switch {
	case len(found) == 0:
		return fmt.Errorf("%s has no export of a bill, which has folders BILLING_PERIOD=YYYY-MM: AWS delivers the first "+
			"within 24 hours after you create it; otherwise correct bucket and prefix", r.st.From)
	case len(found) > mostPeriods:
		return fmt.Errorf("%s has more than %d billing periods: write a narrower prefix", r.st.From, mostPeriods)
	}
	known := map[string]object{}
	for _, o := range objects {
		known[o.key] = o
	}
	r.forget(found)
	for i := range found {
		if err := r.period(ctx, found, i, known); err != nil {
			return err
		}
	}
	return nil
}

// list lists the objects of the export.
func (r *round) list(ctx context.Context) (objects []object, err error) {
	for page := gocloud.FirstPageToken; ; {
		soon, cancel := context.WithTimeout(ctx, still)
		list, next, err := r.bucket.ListPage(soon, page, 1000, &gocloud.ListOptions{Prefix: within(r.s.Prefix)})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.st.From, err)
		}
		for _, o := range list {
			version := blob.Version(o)
			if version == "" {
				version = fmt.Sprintf("%x %d", o.MD5, o.ModTime.UnixNano())
			}
			objects = append(objects, object{o.Key, o.Size, o.ModTime, version})
		}
		if len(objects) > mostObjects {
			return nil, &problem{err: fmt.Errorf("%s has more than %d objects: write a narrower prefix", r.st.From, mostObjects)}
		}
		if page = next; len(next) == 0 {
			return objects, nil
		}
	}
}

// forget drops periods that are no longer in the bucket. Their bills stay.
func (r *round) forget(found []group) {
	r.st.Periods = slices.DeleteFunc(r.st.Periods, func(p period) bool {
		return !slices.ContainsFunc(found, func(g group) bool { return g.month == p.Month && g.export == p.Export })
	})
}

// of returns what is known of a period.
func (r *round) of(g *group) *period {
	at := slices.IndexFunc(r.st.Periods, func(p period) bool { return p.Month == g.month && p.Export == g.export })
	if at < 0 {
		r.st.Periods = append(r.st.Periods, period{BillPeriod: client.BillPeriod{Month: g.month, Export: g.export}})
		slices.SortFunc(r.st.Periods, func(a, b period) int { return newestFirst(a.BillPeriod, b.BillPeriod) })
		return r.of(g)
	}
	return &r.st.Periods[at]
}

// period imports a period if it has changed. It records what is wrong with it; err ends the round.
func (r *round) period(ctx context.Context, found []group, i int, known map[string]object) error {
	g := &found[i]
	p := r.of(g)
	err := r.changed(ctx, p, found, i, known)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if p.Problem, p.Key = "", ""; err != nil {
		p.Problem = line(err.Error())
		var wrong *problem
		if errors.As(err, &wrong) {
			p.Key = wrong.key
		}
		r.again = r.again || wrong == nil || wrong.again
	}
	return r.f.save(ctx, r.s.Engine, r.st) // a crash costs at most this period
}

// changed imports a period if it has changed.
func (r *round) changed(ctx context.Context, p *period, found []group, i int, known map[string]object) error {
	g := &found[i]
	if j := slices.IndexFunc(found, func(o group) bool { return o.month == g.month && o.export != g.export }); j >= 0 {
		return &problem{err: fmt.Errorf("two exports have this month, %s and %s, and each would replace the bill of the "+
			"other: write the prefix of one", g.export, found[j].export)}
	}
	m, ok := g.manifest()
	if !ok {
		return &problem{again: true, err: errors.New("no manifest is there yet: AWS writes it after the files, as " +
			"metadata/…/NAME-Manifest.json")}
	}
	parts, err := r.parts(ctx, m, known)
	if err != nil {
		return err
	}
	p.Parts = len(parts)
	digest := digestOf(parts)
	if p.Digest == digest {
		return nil
	}
	switch closed, err := r.f.Bills.Closed(ctx, g.month); {
	case err != nil:
		return err
	case closed:
		return &problem{err: fmt.Errorf("the bill has changed, and the month is closed: scrimp bill reopen %s lets the next "+
			"fetch import it", g.month)}
	}
	unread, err := r.imports(ctx, parts)
	if err != nil {
		return err
	}
	p.Digest, p.Unread, p.Imported = digest, unread, r.f.Now().UTC().Truncate(time.Second)
	r.imported++
	return nil
}

// parts reads a manifest and returns the objects that it names.
func (r *round) parts(ctx context.Context, m object, known map[string]object) (parts []object, err error) {
	if m.size > mostManifest {
		return nil, &problem{key: m.key, err: fmt.Errorf("the manifest has more than %d bytes", mostManifest)}
	}
	var text []byte
	if err := r.tries(ctx, func(ctx context.Context) (err error) {
		text, err = r.bucket.ReadAll(ctx, m.key)
		return err
	}); err != nil {
		return nil, &problem{m.key, fmt.Errorf("read the manifest: %w", err), true}
	}
	keys, err := partsOf(text, r.s.Bucket)
	if err != nil {
		return nil, &problem{key: m.key, err: err}
	}
	var size int64
	for _, key := range keys {
		o, ok := known[key]
		if !ok {
			return nil, &problem{key, errors.New("the manifest names it, but the bucket has no such file: AWS may still be " +
				"writing the export, or somebody has removed it"), true}
		}
		size += o.size
		parts = append(parts, o)
	}
	if size > mostBytes {
		return nil, &problem{err: fmt.Errorf("its files have more than %d GiB", mostBytes>>30)}
	}
	if left, ok := r.f.Room(); ok && left.Bytes < size+reserve {
		return nil, &problem{err: errors.New("the server's disk has no room for its files: make room on it, as with " +
			"scrimp gc"), again: true}
	}
	return parts, nil
}

// digestOf identifies the versions of objects.
func digestOf(parts []object) string {
	h := sha256.New()
	for _, o := range parts {
		_, _ = fmt.Fprintf(h, "%q %d %q\n", o.key, o.size, o.version) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// imports fetches the parts of a period and keeps their rows: those of all parts, or none.
func (r *round) imports(ctx context.Context, parts []object) (unread int, err error) {
	if err := os.MkdirAll(bills.Folder(r.f.Dir), 0o700); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(bills.Folder(r.f.Dir), folderMark)
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // or the next start removes it
	var set billfile.Set
	for i, o := range parts {
		file := billfile.File{Name: path.Base(o.key), Path: filepath.Join(dir, fmt.Sprint(i))}
		if err := r.tries(ctx, func(ctx context.Context) error { return r.fetch(ctx, o, file.Path) }); err != nil {
			var wrong *problem
			if errors.As(err, &wrong) {
				return 0, err
			}
			return 0, &problem{o.key, fmt.Errorf("read it: %w", err), true}
		}
		torn, err := set.Add(ctx, file, "scrimp bill show")
		switch {
		case errors.Is(err, billfile.ErrEmpty):
			continue
		case err != nil:
			return 0, &problem{key: o.key, err: err}
		case torn != "":
			return 0, &problem{key: o.key, err: fmt.Errorf("it ends early: %s", torn)}
		}
	}
	if len(set.Files) == 0 {
		return 0, nil // the period has begun, and has no charges yet
	}
	return set.Unread, r.keep(ctx, set.Files, filepath.Join(dir, "rows"))
}

// keep imports the rows of files.
func (r *round) keep(ctx context.Context, files []billfile.File, to string) error {
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // it is read again below, and removed
	if err := billfile.Pack(ctx, out, files); err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, no := r.f.Bills.Keep(ctx, out, names, r.by)
	if no == nil {
		return nil
	}
	text := no.Title
	if no.Err != nil {
		text += ": " + no.Err.Error()
	}
	return &problem{err: fmt.Errorf("%s: %s", text, no.Fix), again: no.Status >= 500}
}

// errOther says that an object differs from the listed one.
var errOther = errors.New("it was replaced while it was read: the next fetch reads the new one")

// fetch writes an object to a file.
func (r *round) fetch(ctx context.Context, o object, to string) (err error) {
	ctx, moved, end := wait.Moving(ctx, still)
	defer end()
	in, err := r.bucket.NewReader(ctx, o.key, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if in.Size() != o.size || !in.ModTime().Truncate(time.Second).Equal(o.changed.Truncate(time.Second)) {
		return &problem{o.key, errOther, true}
	}
	out, err := os.Create(to)
	if err != nil {
		return &problem{o.key, err, true}
	}
	n, err := io.Copy(out, &mover{in, moved})
	if err == nil && n != o.size {
		err = fmt.Errorf("%d of %d bytes came: %w", n, o.size, io.ErrUnexpectedEOF)
	}
	return errors.Join(err, out.Close())
}

// mover reports each read that brings bytes.
type mover struct {
	in    io.Reader
	moved func()
}

func (m *mover) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	if n > 0 {
		m.moved()
	}
	return n, err
}
