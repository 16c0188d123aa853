package datacache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/content/blob"
)

// bucket is a Source in an object store.
type bucket struct {
	*gocloud.Bucket
	address  string // of the bucket, without credentials
	prefix   string // of the keys
	only     string // the one object; "": all below prefix
	requests atomic.Int64
}

// schemes lists the schemes of addresses that OpenSource reads.
var schemes = []string{"file", "s3", "gs", "azblob"}

// OpenSource opens an input: file:///folder, s3://bucket/prefix, gs://bucket/prefix or azblob://container/prefix, with
// the parameters of a store's address. region is that of a bucket of Amazon whose address names none.
func OpenSource(ctx context.Context, address, region string) (Source, error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("%w: %.200s: begin it with file://, s3://, gs:// or azblob://", ErrInput, address)
	}
	if u.Fragment != "" { // it would bring what lies beside
		return nil, fmt.Errorf("%w: %.200s: write %%23 for #", ErrInput, address)
	}
	if u.Scheme == "file" {
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(filepath.FromSlash(u.Path)) {
			return nil, fmt.Errorf("%w: %.200s: a folder has three slashes and an absolute path, file:///folder", ErrInput,
				address)
		}
		return OpenFolder(filepath.FromSlash(u.Path))
	}
	query := u.Query()
	if query.Has("prefix") {
		return nil, fmt.Errorf("%w: %.200s: write the prefix as a path, %s://%s/prefix", ErrInput, address, u.Scheme, u.Host)
	}
	if u.Scheme == "s3" && region != "" && !query.Has("region") && !query.Has("endpoint") {
		query.Set("region", region)
	}
	prefix := strings.Trim(u.Path, "/")
	u.Path, u.RawQuery = "", query.Encode()
	b, err := blob.OpenReading(ctx, u.String(), prefix)
	if errors.Is(err, blob.ErrMissing) {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	if err != nil {
		return nil, err
	}
	return &bucket{Bucket: b, address: u.String(), prefix: prefix}, nil
}

func (b *bucket) Address() string { return b.address }
func (b *bucket) Requests() int64 { return b.requests.Load() }

// key returns the key of a file.
func (b *bucket) key(name string) string {
	if b.only != "" {
		return b.only
	}
	if b.prefix == "" {
		return name
	}
	return b.prefix + "/" + name
}

// pageSize is the number of objects in a page of a listing, which is one request.
const pageSize = 1000

func (b *bucket) List(ctx context.Context) ([]File, error) {
	below := ""
	if b.prefix != "" {
		below = b.prefix + "/"
	}
	list, err := b.list(ctx, below, func(key string) (string, bool) {
		name := strings.TrimPrefix(key, below)
		return name, name != "" && !strings.HasSuffix(name, "/") // consoles make empty objects for folders
	})
	if err == nil && len(list) == 0 && b.prefix != "" { // it may be one object
		list, err = b.list(ctx, b.prefix, func(key string) (string, bool) {
			return key[strings.LastIndexByte(key, '/')+1:], key == b.prefix
		})
		if len(list) == 1 {
			b.only = b.prefix
		}
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: no object lies there: correct the path", ErrInput)
	}
	return list, err
}

// list returns the objects with a prefix that have a name.
func (b *bucket) list(ctx context.Context, prefix string, name func(key string) (string, bool)) (list []File,
	err error) {
	for token := gocloud.FirstPageToken; len(token) > 0 && len(list) <= mostFiles; {
		b.requests.Add(1)
		var page []*gocloud.ListObject
		page, token, err = b.ListPage(ctx, token, pageSize, &gocloud.ListOptions{Prefix: prefix})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			name, ok := name(o.Key)
			if !ok {
				continue
			}
			f := File{Name: name, Bytes: o.Size, Version: blob.Version(o)}
			if f.Version == "" { // S3 alone has no MD5 of all objects, so that its entity tag is none
				f.Version, f.MD5 = hex.EncodeToString(o.MD5)+"@"+strconv.FormatInt(o.ModTime.Unix(), 10), o.MD5
			}
			list = append(list, f)
		}
	}
	return list, nil
}

func (b *bucket) Open(ctx context.Context, f File, offset int64) (io.ReadCloser, error) {
	b.requests.Add(1)
	r, err := b.NewRangeReader(ctx, b.key(f.Name), offset, -1, nil)
	if err != nil {
		return nil, err
	}
	same := r.Size() == f.Bytes
	if tag := blob.VersionRead(r); tag != "" {
		same = same && tag == f.Version
	} else if _, at, ok := strings.Cut(f.Version, "@"); ok {
		same = same && strconv.FormatInt(r.ModTime().Truncate(time.Second).Unix(), 10) == at
	}
	if !same {
		return nil, errors.Join(ErrChanged, r.Close())
	}
	return r, nil
}
