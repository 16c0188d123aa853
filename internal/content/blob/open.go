// Package blob opens the stores for checkpoints, outputs and caches: folders, through a crash-safe driver of its own,
// and buckets in S3, Google Cloud Storage and Azure Blob Storage.
package blob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/blob/scopedcreds"
)

// ErrURL says that a store's address is invalid; a retry is useless.
var ErrURL = errors.New("not the address of a store")

// ErrMissing says that a bucket does not exist: a retry finds the same.
var ErrMissing = errors.New("does not exist")

// errLocal explains that this binary, built to compile quickly, has no object stores.
var errLocal = errors.New("this binary was built with the tag local, without object stores: build with make build")

// Hopeless reports whether a store can never be opened as things are: a retry finds the same.
func Hopeless(err error) bool {
	return errors.Is(err, ErrURL) || errors.Is(err, ErrMissing) || errors.Is(err, errLocal)
}

// ErrNone says that nothing was ever stored in a store.
var ErrNone = errors.New("there is no such folder")

// Open opens the store at an address:
//
//	file:///dir?prefix=P                               a folder, created if missing
//	s3://bucket?endpoint=U&region=R&profile=N&prefix=P a bucket, which is never created or deleted
//	gs://bucket?endpoint=U&prefix=P                    likewise
//	azblob://container?account=N&endpoint=U&prefix=P   likewise
//
// The address contains no secret: credentials come from where the provider's own tools find them. The caller closes
// the bucket.
func Open(ctx context.Context, address string) (*blob.Bucket, error) {
	return open(ctx, address, true, nil)
}

// Loan lends credentials for a prefix of a bucket.
type Loan struct {
	Prefix string // of the keys that they cover, below the address's own
	// Fetch requests new credentials. It is called again some minutes before they expire.
	Fetch func(context.Context) (scopedcreds.Credentials, error)
}

// OpenLent is Open with lent credentials for an S3 bucket. Access outside the loan's prefix is denied.
func OpenLent(ctx context.Context, address string, loan Loan) (*blob.Bucket, error) {
	return open(ctx, address, true, &loan)
}

// OpenExisting is Open for reading: it does not create a missing folder, but returns ErrNone.
func OpenExisting(ctx context.Context, address string) (*blob.Bucket, error) {
	return open(ctx, address, false, nil)
}

// OpenReading opens a bucket in S3, or a folder, that somebody else fills. The credentials need to list and read keys
// with the prefix only. Keys are whole: they begin with the prefix.
func OpenReading(ctx context.Context, address, prefix string) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" {
		return open(ctx, address, false, nil)
	}
	b, err := openBucket(ctx, u, u.Query(), func(ctx context.Context, bucket string, query url.Values) (*blob.Bucket,
		error) {
		return openReadS3(ctx, bucket, query, prefix)
	})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", address, err)
	}
	return b, nil
}

func open(ctx context.Context, address string, makes bool, loan *Loan) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w: %w", address, ErrURL, err)
	}
	if u.User != nil {
		u.User = nil // it may be a secret and must not reach an error
		return nil, fmt.Errorf("open store %s: %w: remove the user: credentials come from the environment", u, ErrURL)
	}
	query := u.Query()
	prefix := query.Get("prefix")
	query.Del("prefix")
	if loan != nil && u.Scheme != "s3" {
		return nil, fmt.Errorf("open store %s: %w: credentials are lent for s3:// only", address, ErrURL)
	}
	var b *blob.Bucket
	switch u.Scheme {
	case "file":
		b, err = openFolder(u, query, makes)
	case "s3":
		b, err = openBucket(ctx, u, query, func(ctx context.Context, bucket string, query url.Values) (*blob.Bucket, error) {
			if loan != nil {
				within := *loan
				within.Prefix = strings.Trim(strings.Trim(prefix, "/")+"/"+strings.Trim(loan.Prefix, "/"), "/")
				return openLentS3(ctx, bucket, query, within)
			}
			return openS3(ctx, bucket, query)
		})
	case "gs":
		b, err = openBucket(ctx, u, query, openGCS)
	case "azblob":
		b, err = openBucket(ctx, u, query, openAzure)
	default:
		err = fmt.Errorf("%w: start it with file://, s3://, gs:// or azblob://", ErrURL)
	}
	if err != nil {
		if b != nil {
			_ = b.Close() // nothing was written
		}
		return nil, fmt.Errorf("open store %s: %w", address, err)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		b = blob.PrefixedBucket(b, prefix+"/")
	}
	return b, nil
}

// openBucket opens a bucket by name; an address has a prefix and no path.
func openBucket(ctx context.Context, u *url.URL, query url.Values,
	opens func(context.Context, string, url.Values) (*blob.Bucket, error)) (*blob.Bucket, error) {
	if path := strings.Trim(u.Path, "/"); path != "" {
		return nil, fmt.Errorf("%w: a bucket has no path: write ?prefix=%s", ErrURL, path)
	}
	return opens(ctx, u.Host, query)
}

// noName returns the error for an incomplete address.
func noName(what string) error { return fmt.Errorf("%w: write %s", ErrURL, what) }

// Missing reports whether a store says that it has no such blob. Some stores also answer NotFound for a host without
// an address, a deleted bucket or denied access, which say nothing about the blob.
func Missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound && !elsewhere(err) }

// Taken reports whether a blob that was to be created only if absent already exists.
func Taken(err error) bool { return gcerrors.Code(err) == gcerrors.FailedPrecondition || taken(err) }

func openFolder(u *url.URL, query url.Values, makes bool) (*blob.Bucket, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("%w: a folder has three slashes, file:///%s%s", ErrURL, u.Host, u.Path)
	}
	if len(query) > 0 {
		return nil, fmt.Errorf("%w: a folder takes no parameter but prefix", ErrURL)
	}
	if !filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return nil, fmt.Errorf("%w: the folder's path must be absolute", ErrURL)
	}
	if stat, err := os.Stat(filepath.FromSlash(u.Path)); !makes && (err != nil || !stat.IsDir()) {
		return nil, ErrNone
	}
	f, err := folderblob.New(filepath.FromSlash(u.Path))
	if err != nil {
		return nil, err
	}
	return blob.NewBucket(f), nil
}
