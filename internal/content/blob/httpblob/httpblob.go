// Package httpblob is a store behind a server: a Handler that serves a folder's blobs
// over HTTP, and a Bucket that speaks to it. Nobody needs to reach the folder itself.
//
// What a write carries is held to its size and to a CRC-32C before the blob appears.
// A call that breaks off is made again, a read goes on where it stood, and a server
// that is away for a while is waited for.
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

	"scrimp/internal/content/blob"
)

// A caller acts on these with errors.Is, never on the text.
var (
	ErrOver = errors.New("the token is no longer good for the store of the server") // stop, write nothing more
	ErrOwn  = errors.New("the key is not among the caller's own")
	ErrBad  = errors.New("the request is not what the store takes")
	ErrRoom = errors.New("the server's disk has no room")
	errTorn = errors.New("the content did not arrive whole")
	errBoot = errors.New("the server's machine was started anew: what was not durable there may be lost")

	// ErrChanged says that what is read is no longer what it was: read it from its beginning.
	ErrChanged = errors.New("it has changed meanwhile")
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Most keys that one request may name.
const mostKeys = 1000

// ParameterError is ErrBad about one parameter of a query.
type ParameterError struct{ Name, Why string }

func (e *ParameterError) Error() string { return e.Name + " is " + e.Why }
func (e *ParameterError) Unwrap() error { return ErrBad }

// Status is the answer to a request that ended with err.
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
	is := blob.Code(err)
	for status, code := range codes {
		if is == code {
			return status
		}
	}
	return http.StatusInternalServerError
}

// codes are the answers that say what kind of error it is.
var codes = map[int]gcerrors.ErrorCode{
	http.StatusNotFound:            gcerrors.NotFound,
	http.StatusPreconditionFailed:  gcerrors.FailedPrecondition,
	http.StatusBadRequest:          gcerrors.InvalidArgument,
	http.StatusForbidden:           gcerrors.PermissionDenied,
	http.StatusNotImplemented:      gcerrors.Unimplemented,
	http.StatusInsufficientStorage: gcerrors.ResourceExhausted,
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// Is makes the sentinels of this package out of the answer.
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

// bootID names the run of this machine. Where the system has no name for it, the
// process is its own: it says "started anew" too often, and never too seldom.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 16 {
		return rand.Text()
	}
	return strings.TrimSpace(string(id))
})
