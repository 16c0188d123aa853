package reply

import (
	"io"
	"log/slog"
	"net/http"
	"os"
)

// Program sends the executable at a path, or this one if path is empty.
func Program(w http.ResponseWriter, path string, log *slog.Logger) {
	var err error
	if path == "" {
		path, err = os.Executable()
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		Problem(w, http.StatusServiceUnavailable, "cannot read the program", "ask again later", nil)
		log.Error("cannot send the program to a machine", "error", err)
		return
	}
	defer func() { _ = f.Close() }() // only read
	w.Header().Set("Content-Type", "application/octet-stream")
	if _, err := io.Copy(w, f); err != nil {
		panic(http.ErrAbortHandler) // abort, so that the client cannot take a truncated file for the whole
	}
}
