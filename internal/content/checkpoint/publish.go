package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
	"scrimp/internal/lib/confined"
)

// Publish captures folder dir and publishes the capture; it captures again if the program writes meanwhile. See
// PublishCapture.
func (w *Writer) Publish(ctx context.Context, dir string, meta format.Meta, ignore ...string) (format.Manifest,
	object.Stats, error) {
	capturer := &folder.Capturer{Folder: confined.Folder{Path: dir}, Ignore: ignore}
	for try := 0; ; try++ {
		m, stats, err := w.captureAndPublish(ctx, capturer, meta)
		if !errors.Is(err, ErrChanged) || try == folder.Tries {
			return m, stats, err
		}
		capturer.Copy = true
	}
}

func (w *Writer) captureAndPublish(ctx context.Context, capturer *folder.Capturer, meta format.Meta) (_ format.Manifest,
	_ object.Stats, err error) {
	c, err := capturer.Capture(ctx)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	defer func() { err = errors.Join(err, c.Discard()) }()
	return w.PublishCapture(ctx, c, meta)
}

// PublishCapture stores the parts that the store lacks, and then creates the manifest; before that, nothing of it
// counts. When it returns without error, the checkpoint is durable, and later attempts restore it until a newer one
// exists. ErrFenced: a newer attempt has the claim. ErrChanged: the program overwrote a file in place; capture again.
// After any other error the checkpoint may or may not count; publish again.
func (w *Writer) PublishCapture(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest,
	object.Stats, error) {
	return w.timed(c, meta, func() (format.Manifest, object.Stats, error) { return w.publish(ctx, c, meta) })
}

// timed publishes one capture at a time and measures it.
func (w *Writer) timed(c *folder.Capture, meta format.Meta, publish func() (format.Manifest, object.Stats,
	error)) (format.Manifest, object.Stats, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := time.Now()
	m, stats, err := publish()
	if err != nil {
		return format.Manifest{}, object.Stats{}, fmt.Errorf("publish step %d of %s: %w", meta.Step, w.attempt, err)
	}
	stats.Captured, stats.Took = c.Took, time.Since(begin)
	return m, stats, nil
}

func (w *Writer) publish(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest,
	object.Stats, error) {
	if err := w.unfenced(ctx); err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	files, stats, err := w.store.objects.Upload(ctx, w.token.String(), w.known, c.Files)
	if err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	meta.Epoch, meta.Captured, meta.Metrics = w.token.epoch, meta.Captured.UTC(), format.Finite(meta.Metrics)
	m := format.Manifest{
		Form: format.Version, Meta: meta, Session: w.token.session, Writer: w.name,
		Published: time.Now().UTC(), Bytes: c.Bytes, Files: files,
	}
	if err := w.create(ctx, &m); err != nil {
		return format.Manifest{}, object.Stats{}, err
	}
	return m, stats, nil
}

// create gives the manifest the next name and makes it visible.
func (w *Writer) create(ctx context.Context, m *format.Manifest) error {
	m.Files = format.Untagged(m.Files)
	for {
		if err := w.unfenced(ctx); err != nil {
			return err
		}
		m.Name = format.NameOf(w.token.epoch, w.seq+1)
		data, err := format.Seal(m)
		if err != nil {
			return err
		}
		err = w.store.objects.Create(ctx, "manifests/"+m.Name, data)
		if errors.Is(err, object.ErrTaken) {
			// The name was taken by an apparently failed publish of ours, or by an earlier session of this attempt.
			w.seq++
			continue
		}
		if err != nil {
			return err
		}
		w.seq++
		// A claim made before the manifest may not have seen it.
		return w.unfenced(ctx)
	}
}
