package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/checkpoint/format"
)

// CheckSizes returns ErrDamaged unless every part exists and has its size.
func (s *Store) CheckSizes(ctx context.Context, parts []format.Part) error {
	return s.parallel(ctx, len(parts), 0, func(ctx context.Context, _ []byte, i int) error {
		a, err := s.bucket.Attributes(ctx, s.prefix+parts[i].Key())
		if err != nil {
			return readError(parts[i].Key(), err)
		}
		if a.Size != parts[i].Size {
			return fmt.Errorf("read %s: %w: %d bytes, not %d", parts[i].Key(), format.ErrDamaged, a.Size, parts[i].Size)
		}
		return nil
	})
}

// Has reports whether a part exists and has its size. It returns false also if the store does not answer.
func (s *Store) Has(ctx context.Context, p format.Part) bool {
	a, err := s.bucket.Attributes(ctx, s.prefix+p.Key())
	return err == nil && a.Size == p.Size
}

// ReadBack reads parts back and calls done, unless it is nil, for each that is intact.
func (s *Store) ReadBack(ctx context.Context, parts []format.Part, done func(format.Part)) error {
	return s.parallel(ctx, len(parts), bufferFor(parts), func(ctx context.Context, buffer []byte, i int) error {
		if err := s.readPart(ctx, parts[i], buffer[:parts[i].Size]); err != nil {
			return err
		}
		if done != nil {
			done(parts[i])
		}
		return nil
	})
}

func bufferFor(parts []format.Part) int64 {
	var n int64
	for _, p := range parts {
		n = max(n, p.Size)
	}
	return n
}

// readPart fills the buffer with a part whose every byte is right. It reads twice before it reports damage, because
// the transport may be at fault.
func (s *Store) readPart(ctx context.Context, p format.Part, buffer []byte) error {
	p.Tag = ""
	return s.readTagged(ctx, p, buffer)
}

// readTagged is readPart with a check of the tag, if the part has one. The second time the hash decides.
func (s *Store) readTagged(ctx context.Context, p format.Part, buffer []byte) error {
	err := s.readPartOnce(ctx, p, buffer)
	if errors.Is(err, format.ErrDamaged) {
		p.Tag = ""
		err = s.readPartOnce(ctx, p, buffer)
	}
	return err
}

func (s *Store) readPartOnce(ctx context.Context, p format.Part, buffer []byte) (err error) {
	r, err := s.bucket.NewReader(ctx, s.prefix+p.Key(), &blob.ReaderOptions{})
	if err != nil {
		return readError(p.Key(), err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() != p.Size {
		return fmt.Errorf("read %s: %w: %d bytes, not %d", p.Key(), format.ErrDamaged, r.Size(), p.Size)
	}
	if _, err := io.ReadFull(r, buffer); err != nil {
		return readError(p.Key(), err)
	}
	if !p.Holds(buffer) {
		return fmt.Errorf("read %s: %w: its content has another hash", p.Key(), format.ErrDamaged)
	}
	return nil
}

// Write writes the content of a file part by part. It checks each part against its hash before it writes it. The buffer
// holds the largest part.
func (s *Store) Write(ctx context.Context, f format.File, buffer []byte, to io.Writer) error {
	for _, p := range f.Parts {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if p.Size > int64(len(buffer)) {
			return errors.New("a part is larger than all of them")
		}
		if err := s.readPart(ctx, p, buffer[:p.Size]); err != nil {
			return err
		}
		if _, err := to.Write(buffer[:p.Size]); err != nil {
			return err
		}
	}
	return nil
}

// CopyParts stores parts of another store under home, each checked against its hash on the way.
func (s *Store) CopyParts(ctx context.Context, from *Store, parts []format.Part, home string) error {
	var later folderblob.Later
	err := from.parallel(ctx, len(parts), bufferFor(parts), func(ctx context.Context, buffer []byte, i int) error {
		data := buffer[:parts[i].Size]
		if err := from.readPart(ctx, parts[i], data); err != nil {
			return err
		}
		part := format.Part{Sum: parts[i].Sum, Size: parts[i].Size, Home: home}
		return s.bucket.Upload(ctx, s.prefix+part.Key(), bytes.NewReader(data), later.Options(*writeOptions(false)))
	})
	return errors.Join(err, later.Sync(ctx))
}
