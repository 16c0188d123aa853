package workdir

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/workdir/flow"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/wire/api"
)

// Uploads are kept for a day, for submissions that are sent again. Each user has a limit; the oldest uploads go
// first.
const (
	keepUploads = 24 * time.Hour
	mostSent    = 64
	mostDisk    = 4 * pack.MaxWork // bytes of disk
	mostFiles   = 2 * maxFiles     // files, folders and links
)

// unpacking bounds the folders unpacked at once: each has its list in memory.
const unpacking = 2

// Limits on concurrent uploads: each is on the disk before its contents are known.
const (
	userUploads = 4
	allUploads  = 64
)

// uploadName matches the names that Take returns.
var uploadName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Uploads takes work folders for submissions that follow.
type Uploads struct {
	Store  *Store
	turns  chan struct{} // holds one element per unpacking
	coming auth.Streams  // uploads in progress, by user
}

// NewUploads returns the uploads of a store.
func NewUploads(s *Store) *Uploads { return &Uploads{Store: s, turns: make(chan struct{}, unpacking)} }

func (u *Uploads) of(user string) string {
	return filepath.Join(u.Store.Dir, "sent", filepath.Base(cmp.Or(user, "-")))
}

// Take receives a work folder.
func (u *Uploads) Take(w http.ResponseWriter, r *http.Request) {
	if u.Store.Room.Full(r.ContentLength) != nil {
		sayNoRoom(w)
		return
	}
	end, err := u.coming.Open(auth.CallerOf(r).User, userUploads, allUploads)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		reply.Problem(w, http.StatusTooManyRequests, "too many work folders are sent at once",
			"send one after the other", err)
		return
	}
	defer end()
	dir := u.of(auth.CallerOf(r).User)
	var chance [16]byte
	_, _ = rand.Read(chance[:]) // rand.Read never fails
	name := hex.EncodeToString(chance[:])
	err = u.take(w, r, filepath.Join(dir, name))
	var big *http.MaxBytesError
	switch {
	case errors.Is(err, ErrNoRoom):
		sayNoRoom(w)
	case errors.As(err, &big):
		reply.Problem(w, http.StatusRequestEntityTooLarge, "the folder is larger than 2 GiB",
			"leave data out with a file .scrimpignore", nil)
	case errors.Is(err, errCut):
		reply.Problem(w, http.StatusBadRequest, "the folder did not arrive whole", "send it again", err)
	case err != nil:
		reply.Problem(w, http.StatusUnprocessableEntity, "the work folder is not taken",
			"send a tar file in gzip, and leave out the rest with .scrimpignore", err)
	default:
		u.forget(dir)
		auth.CallOf(r).Act.Object = name
		reply.JSON(w, api.Work{Work: name})
	}
}

func sayNoRoom(w http.ResponseWriter) {
	reply.Problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the folder",
		"make room on it, as with scrimp gc, or leave data out with a file .scrimpignore", nil)
}

// errCut means that a folder did not arrive completely.
var errCut = errors.New("cut short")

// take stores a folder under a name. It unpacks the folder after it has arrived, so that slow senders do not occupy
// a turn.
func (u *Uploads) take(w http.ResponseWriter, r *http.Request, path string) error {
	f, err := u.Store.aside()
	if err != nil {
		return err
	}
	defer func() { _, _ = f.Close(), os.Remove(f.Name()) }() // on an error, Open removes it
	if _, err = io.Copy(f, &flow.Roomy{Room: u.Store.Room,
		From: http.MaxBytesReader(w, r.Body, pack.MaxWork)}); err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) || errors.Is(err, ErrNoRoom) {
			return err
		}
		return fmt.Errorf("%w: %w", errCut, err)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	select {
	case u.turns <- struct{}{}:
		defer func() { <-u.turns }()
	case <-r.Context().Done():
		return fmt.Errorf("%w: %w", errCut, r.Context().Err())
	}
	return u.Store.writeTo(path, func(to *writer) error { return to.unpack(f) })
}

// forget drops a user's uploads beyond the limits. Folders of jobs stay.
func (u *Uploads) forget(dir string) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type sent struct {
		path string
		Ref
	}
	var all []sent
	for _, n := range names {
		if r, err := u.Store.read(filepath.Join(dir, n.Name())); err == nil {
			all = append(all, sent{filepath.Join(dir, n.Name()), r})
		}
	}
	slices.SortFunc(all, func(a, b sent) int { return b.Kept.Compare(a.Kept) })
	taken, files := int64(0), int64(0)
	for i, f := range all {
		taken, files = taken+max(f.Disk, f.Bytes), files+f.Files
		if i > 0 && (i >= mostSent || taken > mostDisk || files > mostFiles) {
			_ = drop(f.path) // the next upload tries again
		}
	}
}

// Give gives a job an upload of the caller.
func (u *Uploads) Give(c identity.Caller, name, job string) error {
	if !uploadName.MatchString(name) {
		return fmt.Errorf("%.40q is not a name from POST /v1/work", name)
	}
	err := u.Store.give(job, filepath.Join(u.of(c.User), name))
	if errors.Is(err, ErrNone) {
		return fmt.Errorf("there is no folder %s: upload it with POST /v1/work; it is kept for a day", name)
	}
	return err
}
