// Package httpblob is a store behind a server: a Handler that serves a folder's blobs over HTTP, and a Bucket that is
// its client. Clients need no access to the folder itself.
//
// The server checks the size and the CRC-32C of a write before the blob appears. The client repeats a broken call,
// resumes a read where it stopped, and waits for a server that is unreachable for a while.
package httpblob

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/crc32"
	"net/http"
	"os"
	"strings"
	"sync"

	"gocloud.dev/gcerrors"

	"scrimp/internal/content/blob/folderblob"
)

// Callers test for these errors with errors.Is, never by their text.
var (
	ErrOver = errors.New("the token is no longer valid for the server's store") // stop, write nothing more
	ErrOwn  = errors.New("the key does not belong to the caller")
	ErrBad  = errors.New("the store does not accept the request")
	ErrRoom = errors.New("the server's disk has no room")
	errTorn = errors.New("the content did not arrive whole")
	errBoot = errors.New("the server's machine restarted: blobs that were not durable may be lost")

	// ErrChanged says that the content changed during the read: read it again from its beginning.
	ErrChanged = errors.New("it has changed meanwhile")
)

// castagnoli is the polynomial for which processors have an instruction.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxKeys bounds the keys in one request.
const maxKeys = 1000

// ParameterError is an ErrBad about one query parameter.
type ParameterError struct{ Name, Why string }

func (e *ParameterError) Error() string { return e.Name + " is " + e.Why }
func (e *ParameterError) Unwrap() error { return ErrBad }

// Status returns the HTTP status for an error.
func Status(err error) int {
	switch {
	case errors.Is(err, ErrOwn):
		return http.StatusForbidden
	case errors.Is(err, ErrOver):
		return http.StatusGone
	case errors.Is(err, ErrBad):
		return http.StatusBadRequest
	case errors.Is(err, errTorn): // to be sent again
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrRoom):
		return http.StatusInsufficientStorage
	case errors.Is(err, errBoot):
		return http.StatusConflict
	case errors.Is(err, ErrChanged):
		return http.StatusPreconditionFailed
	}
	is := folderblob.Code(err)
	for status, code := range codes {
		if is == code {
			return status
		}
	}
	return http.StatusInternalServerError
}

// codes maps statuses to kinds of error.
var codes = map[int]gcerrors.ErrorCode{
	http.StatusNotFound:            gcerrors.NotFound,
	http.StatusPreconditionFailed:  gcerrors.FailedPrecondition,
	http.StatusBadRequest:          gcerrors.InvalidArgument,
	http.StatusForbidden:           gcerrors.PermissionDenied,
	http.StatusNotImplemented:      gcerrors.Unimplemented,
	http.StatusInsufficientStorage: gcerrors.ResourceExhausted,
}

// statusError is an error response.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// Is maps the response to the sentinels of this package.
func (e *statusError) Is(target error) bool {
	switch target {
	case ErrOver:
		return e.status == http.StatusGone || e.status == http.StatusUnauthorized
	case ErrOwn:
		return e.status == http.StatusForbidden
	case ErrRoom:
		return e.status == http.StatusInsufficientStorage
	}
	return false
}

// ErrorCode classifies an error of this driver.
func (b *Bucket) ErrorCode(err error) gcerrors.ErrorCode {
	if s, ok := errors.AsType[*statusError](err); ok {
		if code, ok := codes[s.status]; ok {
			return code
		}
		return gcerrors.Unknown
	}
	switch {
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	case errors.Is(err, errors.ErrUnsupported):
		return gcerrors.Unimplemented
	case errors.Is(err, ErrChanged):
		return gcerrors.FailedPrecondition
	}
	return gcerrors.Unknown
}

// bootID identifies the current boot of this machine. If the system has no such id, the process is its own: it then
// reports restarts too often, never too rarely.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 16 {
		return rand.Text()
	}
	return strings.TrimSpace(string(id))
})
