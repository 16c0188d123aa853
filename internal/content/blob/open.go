// Package blob opens the stores that hold checkpoints, outputs and caches:
// folders, through a driver of our own that survives a crash, and buckets in S3, Google
// Cloud Storage and Azure Blob Storage.
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

	"scrimp/internal/content/blob/lent"
)

// ErrURL says that a store's address cannot be understood; trying again is useless.
var ErrURL = errors.New("not the address of a store")

// ErrNone says that nothing was ever kept in a store.
var ErrNone = errors.New("there is no such folder")

// Open opens the store at an address:
//
//	file:///dir?prefix=P                               a folder, made where it is missing
//	s3://bucket?endpoint=U&region=R&profile=N&prefix=P a bucket, which is never made or deleted
//	gs://bucket?endpoint=U&prefix=P                    likewise
//	azblob://container?account=N&endpoint=U&prefix=P   likewise
//
// The address holds no secret: credentials come from where the provider's own tools look.
// The caller closes the bucket.
func Open(ctx context.Context, address string) (*blob.Bucket, error) {
	return open(ctx, address, true, nil)
}

// Loan is how somebody else lends credentials for a prefix of a bucket.
type Loan struct {
	Prefix string // of the keys that they are good for, below the address' own
	// Fetch asks for new ones. It is asked again some minutes before they expire.
	Fetch func(context.Context) (lent.Credentials, error)
}

// OpenLent is Open with lent credentials for a bucket of S3. What is below no other prefix than the loan's is denied.
func OpenLent(ctx context.Context, address string, loan Loan) (*blob.Bucket, error) {
	return open(ctx, address, true, &loan)
}

// OpenExisting is Open for reading: a folder that is missing is not made, but ErrNone.
func OpenExisting(ctx context.Context, address string) (*blob.Bucket, error) {
	return open(ctx, address, false, nil)
}

func open(ctx context.Context, address string, makes bool, loan *Loan) (*blob.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w: %w", address, ErrURL, err)
	}
	if u.User != nil {
		u.User = nil // it may be a secret: it must not reach an error
		return nil, fmt.Errorf("open store %s: %w: leave the user out, credentials come from the environment", u, ErrURL)
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
		err = fmt.Errorf("%w: begin it with file://, s3://, gs:// or azblob://", ErrURL)
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

// openBucket opens a bucket by name: what lies in it has a prefix and no path.
func openBucket(ctx context.Context, u *url.URL, query url.Values,
	opens func(context.Context, string, url.Values) (*blob.Bucket, error)) (*blob.Bucket, error) {
	if path := strings.Trim(u.Path, "/"); path != "" {
		return nil, fmt.Errorf("%w: a bucket has no path: write ?prefix=%s", ErrURL, path)
	}
	return opens(ctx, u.Host, query)
}

// noName says what an address lacks.
func noName(what string) error { return fmt.Errorf("%w: write %s", ErrURL, what) }

// Missing reports whether a store says that it has no such blob. A host without an address, a bucket that is gone and
// a denied access are told as NotFound too by some stores, and are no word about the blob.
func Missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound && !elsewhere(err) }

// Taken reports whether a store says that a blob is there already, which was to be created only where it is absent.
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
	f, err := NewFolder(filepath.FromSlash(u.Path))
	if err != nil {
		return nil, err
	}
	return blob.NewBucket(f), nil
}
