package workdir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/reply"
)

// uploads are kept for a day: a submission that is sent again finds them.
const keepUploads = 24 * time.Hour

// uploadName is what Take gives.
var uploadName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Uploads are the work folders that were sent, each for a submission that follows.
type Uploads struct {
	Dir  string // the data folder
	Room disk.Room
}

func (u *Uploads) of(c identity.Caller) string { return filepath.Join(u.Dir, "uploads", c.User) }

// Take takes a work folder.
func (u *Uploads) Take(w http.ResponseWriter, r *http.Request) {
	dir := u.of(auth.CallerOf(r))
	if _, full := u.Room.Full(r.ContentLength); full {
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the folder",
			"make room on it, or leave data out with a file .scrimpignore", nil)
		return
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the folder was not kept", "see the server's log", err)
		return
	}
	if old, err := os.ReadDir(dir); err == nil {
		for _, e := range old {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepUploads {
				_ = os.Remove(filepath.Join(dir, e.Name())) // the next one tries again
			}
		}
	}
	var chance [16]byte
	_, _ = rand.Read(chance[:]) // it never fails
	name := hex.EncodeToString(chance[:])
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(f, &roomy{room: u.Room, from: http.MaxBytesReader(w, r.Body, maxWork)})
		err = errors.Join(err, f.Close())
	}
	if err != nil && f != nil {
		_ = os.Remove(f.Name()) // what is cut short is of no use
	}
	var big *http.MaxBytesError
	switch {
	case errors.Is(err, errNoRoom):
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the folder",
			"make room on it, or leave data out with a file .scrimpignore", nil)
	case errors.As(err, &big):
		reply.Problem(w, http.StatusRequestEntityTooLarge, "the folder is larger than 2 GiB",
			"leave data out with a file .scrimpignore", nil)
	case err != nil:
		reply.Problem(w, http.StatusBadRequest, "the folder did not arrive whole", "send it again", err)
	default:
		auth.CallOf(r).Act.Object = name
		reply.JSON(w, api.Work{Work: name})
	}
}

var errNoRoom = errors.New("the disk has no room")

// roomy reads as long as the server's disk has room beside what the log needs.
type roomy struct {
	room disk.Room
	from io.Reader
}

func (r *roomy) Read(p []byte) (int, error) {
	if _, full := r.room.Full(0); full {
		return 0, errNoRoom
	}
	return r.from.Read(p)
}

// Unpack fills a folder from what the caller has sent under that name.
func (u *Uploads) Unpack(c identity.Caller, name, to string) error {
	if !uploadName.MatchString(name) {
		return fmt.Errorf("%q is no name that POST /v1/work gave", name)
	}
	f, err := os.Open(filepath.Join(u.of(c), name))
	if err != nil {
		return fmt.Errorf("the folder %s is not here: POST /v1/work sends it, and it is kept for a day", name)
	}
	defer func() { _ = f.Close() }()
	return Unpack(f, to)
}
