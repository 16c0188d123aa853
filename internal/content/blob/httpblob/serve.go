package httpblob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"gocloud.dev/blob/driver"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Handler serves one caller's blobs in a folder. A method that returns an error has not written a response: Status
// says which one to write.
type Handler struct {
	Folder *folderblob.Store
	Owns   func(key string) bool // whether the caller may name the key, or list it as a prefix
	Writes func(key string) bool // whether the caller may also write or delete it; nil: any of its own
	Room   func(n int) error     // called before n bytes of content are stored; returns why they may not be
	Live   func() error          // called before a change; returns why the caller may change nothing any more
}

// own returns the key in the request.
func (h Handler) own(key string) (string, error) {
	if !h.Owns(key) {
		return "", fmt.Errorf("%w: %.200q", ErrOwn, key)
	}
	return key, h.Folder.Linkless(key)
}

// changed is own for a key that the caller may write or delete.
func (h Handler) changed(key string) (string, error) {
	if h.Writes != nil && !h.Writes(key) {
		return "", fmt.Errorf("%w: another machine of the gang writes %.200q", ErrOwn, key)
	}
	return h.own(key)
}

// Read responds with a blob, or with its metadata only.
func (h Handler) Read(w http.ResponseWriter, r *http.Request) error {
	key, err := h.own(r.URL.Query().Get("key"))
	if err != nil {
		return err
	}
	file, stat, tag, err := h.Folder.OpenBlob(key)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("ETag", tag)
	head.Set(api.BlobModified, stat.ModTime().UTC().Format(time.RFC3339Nano))
	if bySocket(r) {
		w = carried{w}
	}
	http.ServeContent(w, r, "", time.Time{}, file)
	return nil
}

// Write stores a blob's content. The blob appears whole or not at all.
func (h Handler) Write(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	key, err := h.changed(query.Get("key"))
	if err != nil {
		return err
	}
	later, err := isLater(query.Get("durable"))
	if err != nil {
		return err
	}
	absent := false
	switch match := r.Header.Get("If-None-Match"); match {
	case "":
	case "*":
		absent = true
	default:
		return fmt.Errorf("%w: If-None-Match is %.40q, and only * is understood", ErrBad, match)
	}
	sum := func() string {
		if s := r.Header.Get(api.BlobSum); s != "" {
			return s
		}
		return r.Trailer.Get(api.BlobSum)
	}
	if err := h.write(r.Context(), key, r.Body, sum, absent, later); err != nil {
		return err
	}
	w.Header().Set(api.BlobBoot, bootID())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func isLater(durable string) (bool, error) {
	if durable != "" && durable != "later" {
		return false, fmt.Errorf("%w: durable is %.40q, and only later is understood", ErrBad, durable)
	}
	return durable != "", nil
}

// write creates a blob from all of from; it calls sum at the end.
func (h Handler) write(ctx context.Context, key string, from io.Reader, sum func() string, absent, later bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := driver.WriterOptions{IfNotExist: absent}
	var l folderblob.Later
	if later {
		opts.BeforeWrite = func(as func(any) bool) error { as(&l); return nil }
		defer l.Leave()
	}
	if err := h.Room(0); err != nil {
		return err
	}
	to, err := h.Folder.NewTypedWriter(ctx, key, "", &opts)
	if err != nil {
		return err
	}
	got, err := h.copy(to, from)
	want := sum()
	switch {
	case err != nil:
	case want == "":
		err = fmt.Errorf("%w: no header or trailer %s has the content's CRC-32C", ErrBad, api.BlobSum)
	case want != fmt.Sprintf("%08x", got):
		err = fmt.Errorf("%w: its CRC-32C is %08x and not %.20q, as %s says", errTorn, got, want, api.BlobSum)
	}
	if err == nil {
		err = h.Live()
	}
	if err != nil {
		cancel() // makes Close discard the blob
		_ = to.Close()
		return err
	}
	return to.Close()
}

// copy copies content and returns its CRC-32C.
func (h Handler) copy(to io.Writer, from io.Reader) (sum uint32, err error) {
	lent := newCarrier()
	defer lent.release()
	for n := 0; ; {
		buffer := lent.buffer(n)
		n, err = from.Read(buffer)
		sum = crc32.Update(sum, castagnoli, buffer[:n])
		if n > 0 {
			if room := h.Room(n); room != nil {
				return sum, room
			}
			if _, werr := to.Write(buffer[:n]); werr != nil {
				return sum, werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return sum, nil
		case err != nil:
			return sum, fmt.Errorf("%w: %w", errTorn, err)
		}
	}
}

// Delete removes a blob.
func (h Handler) Delete(w http.ResponseWriter, r *http.Request) error {
	key, err := h.changed(r.URL.Query().Get("key"))
	if err == nil {
		err = h.Live()
	}
	if err == nil {
		err = h.Folder.Delete(r.Context(), key)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// List responds with a page of the blobs whose keys begin with a prefix.
func (h Handler) List(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	prefix, err := h.own(query.Get("prefix"))
	if err != nil {
		return err
	}
	size := maxKeys
	if text := query.Get("limit"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 1 || size > maxKeys {
			return &ParameterError{"limit", fmt.Sprintf("%.20q, and not a number from 1 to %d", text, maxKeys)}
		}
	}
	page, err := h.Folder.ListPaged(r.Context(), &driver.ListOptions{Prefix: prefix, Delimiter: query.Get("delimiter"),
		PageSize: size, PageToken: []byte(query.Get("page"))})
	if err != nil {
		return err
	}
	list := api.Blobs{Blobs: []api.Blob{}, Next: string(page.NextPageToken)}
	for _, o := range page.Objects {
		list.Blobs = append(list.Blobs, api.Blob{Key: o.Key, Size: o.Size, Modified: o.ModTime.UTC(), Folder: o.IsDir})
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(list)
}

// Sync makes blobs durable that were written with durable=later.
func (h Handler) Sync(w http.ResponseWriter, r *http.Request) error {
	var q api.BlobSync
	if err := decode(r.Body, &q); err != nil {
		return err
	}
	if q.Boot != bootID() {
		return errBoot
	}
	for _, key := range q.Keys {
		if _, err := h.own(key); err != nil {
			return err
		}
	}
	if err := h.Folder.Sync(r.Context(), q.Keys); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxJSON bounds the size of a request that names keys.
const maxJSON = 4 << 20

func decode(from io.Reader, into any) error {
	text, err := io.ReadAll(io.LimitReader(from, maxJSON+1))
	if err != nil {
		return fmt.Errorf("%w: %w", errTorn, err)
	}
	if len(text) > maxJSON {
		return fmt.Errorf("%w: it is longer than %d MiB", ErrBad, maxJSON>>20)
	}
	if err := limits.Check(reflect.TypeOf(into).Elem(), text); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	return nil
}
