package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/disk"
	"scrimp/internal/store/sqlite"
)

// reserveEvery is the interval between attempts to restore the disk reserve.
const reserveEvery = 5 * time.Second

// releaseReserve releases the disk reserve when the log finds no room, and reports whether there was one.
func (s *Server) releaseReserve() bool {
	gave, err := s.reserve.Give()
	if err != nil {
		s.opts.Log.Error("cannot release the disk reserve", "error", err)
	}
	if gave {
		s.opts.Log.Error("the disk is full: the reserve is in use, and new jobs are refused; make room", "folder", s.opts.Dir)
	}
	return gave
}

// keepReserve keeps a disk reserve until ctx ends, and restores it after a release. A server with its log in
// PostgreSQL keeps none.
func (s *Server) keepReserve(ctx context.Context) {
	if s.opts.DB != "" {
		return
	}
	warned := false
	for {
		_, err := s.reserve.Take()
		if err != nil && !warned {
			s.opts.Log.Warn("cannot keep a disk reserve for the log", "error", err)
		}
		warned = err != nil
		if wait.For(ctx, reserveEvery) != nil {
			return
		}
	}
}

// freeFullDisk releases the reserve if the server starts on a full disk: otherwise it could not open the log.
func freeFullDisk(o *Options) {
	if left, known := disk.Of(o.Dir)(); known && left.Bytes < 1<<20 && o.DB == "" {
		gave, err := (&disk.Reserve{Dir: o.Dir}).Give()
		o.Log.Error("the disk is full: make room", "folder", o.Dir, "reserve given up", gave, "error", err)
	}
}

// openLocal opens the log in the folder of a server. It returns nil for a server whose log lies in PostgreSQL.
func openLocal(o *Options) (*sqlite.Store, error) {
	if o.DB != "" {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(o.Dir, ElsewhereName)); err == nil {
		return nil, fmt.Errorf("the log of %s lies in PostgreSQL: start scrimp serve with --db, or take another folder with "+
			"--data", o.Dir)
	}
	freeFullDisk(o)
	return sqlite.Open(o.Dir)
}

// teamDisks returns the disk limit in bytes of each team that has one.
func (s *Server) teamDisks() map[string]int64 {
	limits := map[string]int64{}
	s.gate.People.Read(func(b *identity.Book) {
		for _, t := range b.Teams() {
			if t.Disk > 0 {
				limits[t.Name] = t.Disk
			}
		}
	})
	return limits
}
