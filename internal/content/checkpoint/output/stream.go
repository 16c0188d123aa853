package output

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
)

// Tar writes the files of a manifest as a tar file, part by part, without using a disk and with at most one part in
// memory. It checks each part against its hash before it writes it, so that damage ends the stream and is not in it.
func (s Store) Tar(ctx context.Context, m format.Manifest, to io.Writer) error {
	t := tar.NewWriter(to)
	buffer, giveBack := object.Lend(m.Parts())
	defer giveBack()
	for _, f := range m.Files {
		if err := s.tarOne(ctx, t, f, buffer); err != nil {
			return fmt.Errorf("send %s: %w", f.Path, err)
		}
	}
	return t.Close()
}

// tarOne writes a folder, a link or a file.
func (s Store) tarOne(ctx context.Context, t *tar.Writer, f format.File, buffer []byte) error {
	h := &tar.Header{Name: f.Path, Mode: int64(f.Mode.Perm()), ModTime: f.Modified, Size: f.Size, Typeflag: tar.TypeReg}
	switch f.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, f.Path+"/"
	case fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Target
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	return s.objects.Write(ctx, f, buffer, t)
}

// Content writes the content of a manifest's file. It checks each part against its hash before it writes it.
func (s Store) Content(ctx context.Context, f format.File, to io.Writer) error {
	buffer, giveBack := object.Lend(f.Parts)
	defer giveBack()
	if err := s.objects.Write(ctx, f, buffer, to); err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	return nil
}
