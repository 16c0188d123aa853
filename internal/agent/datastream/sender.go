package datastream

import (
	"io"
	"net/http"
)

// sender sends a body. The kernel copies what lies in the cache to the connection, without a detour through the agent.
type sender struct {
	http.ResponseWriter
	b *body
}

// ReadFrom is what http.ServeContent calls for a whole file or one range.
func (s *sender) ReadFrom(from io.Reader) (sent int64, err error) {
	to, kernel := s.ResponseWriter.(io.ReaderFrom)
	part, is := from.(*io.LimitedReader)
	if !kernel || !is || part.R != s.b {
		return io.Copy(struct{ io.Writer }{s.ResponseWriter}, from)
	}
	for part.N > 0 && err == nil {
		var there, n int64
		if there, err = s.b.arrived(); err != nil {
			break
		}
		if there > 0 {
			n, err = s.file(to, min(there, part.N))
		} else {
			n, err = io.CopyN(struct{ io.Writer }{s.ResponseWriter}, s.b, min(window, part.N))
		}
		part.N -= n
		sent += n
	}
	return sent, err
}

// file sends bytes of the body's file.
func (s *sender) file(to io.ReaderFrom, bytes int64) (n int64, err error) {
	if _, err = s.b.file.Seek(s.b.at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err = to.ReadFrom(&io.LimitedReader{R: s.b.file, N: bytes})
	if s.b.at += n; err == nil && n < bytes {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
