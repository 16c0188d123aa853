//go:build !local

package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/weburl"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
)

// reachTime bounds a bucket's first answer: without it, the provider's SDKs retry for minutes or for ever if nobody
// answers.
const reachTime = 30 * time.Second

// remote describes a bucket in errors.
type remote struct {
	name  string // for example "bucket models of Google Cloud Storage"
	at    string // the service it is on
	keys  string // how to give credentials
	needs string // what the caller does there; "": everything that stores need
}

// reach reads the first page below a prefix of a bucket, and closes the bucket on failure.
func (r remote) reach(ctx context.Context, b *blob.Bucket, prefix string) (*blob.Bucket, error) {
	within, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	_, _, err := b.ListPage(within, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: prefix})
	if err == nil {
		return b, nil
	}
	_ = b.Close() // nothing was written
	return nil, r.explain(ctx, err)
}

// explain adds what is wrong with a bucket and how to fix it.
func (r remote) explain(ctx context.Context, err error) error {
	var unreached *net.OpError
	var nowhere *net.DNSError
	status := statusOf(err)
	switch {
	case ctx.Err() != nil:
		return err
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%s: access denied: let these credentials %s there, or give others: %s: %w", r.name,
			cmp.Or(r.needs, "list, read, write and delete"), r.keys, err)
	case status == http.StatusNotFound || named(err):
		return fmt.Errorf("%s %w: create it, or correct the name: %w", r.name, ErrMissing, err)
	case errors.As(err, &unreached), errors.As(err, &nowhere), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %s does not answer: correct the address, or the way to it: %w", r.name, r.at, err)
	}
	return fmt.Errorf("%s: %w", r.name, err)
}

// named reports whether S3 says that no bucket can have the name.
func named(err error) bool {
	var amazon smithy.APIError
	return errors.As(err, &amazon) && amazon.ErrorCode() == "InvalidBucketName"
}

// Denied reports whether a provider refuses the credentials, or says that the bucket does not exist: a retry is
// useless.
func Denied(err error) bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, statusOf(err))
}

// unsigned returns the error for missing credentials.
func (r remote) unsigned(err error) error {
	return fmt.Errorf("%s: no credentials: %s: %w", r.name, r.keys, err)
}

// statusOf returns the HTTP status of a provider's answer; 0 if there was none.
func statusOf(err error) int {
	var google *googleapi.Error
	var azure *azcore.ResponseError
	var amazon interface{ HTTPStatusCode() int }
	switch {
	case errors.As(err, &google):
		return google.Code
	case errors.As(err, &azure):
		return azure.StatusCode
	case errors.As(err, &amazon):
		return amazon.HTTPStatusCode()
	case gcerrors.Code(err) == gcerrors.NotFound && !elsewhere(err):
		return http.StatusNotFound
	}
	return 0
}

// elsewhere reports whether an apparently missing blob is another problem: a host without an address, a deleted
// bucket, or access that Google denies.
func elsewhere(err error) bool {
	var google *googleapi.Error
	if errors.As(err, &google) && google.Code != http.StatusNotFound {
		return true
	}
	var nowhere *net.DNSError
	var asked *smithy.OperationError
	if errors.As(err, &asked) { // gocloud.dev reports any error with 301 in its text, such as in a request id, as NotFound
		var amazon smithy.APIError
		return !errors.As(err, &amazon) || !slices.Contains(missingKeys, amazon.ErrorCode())
	}
	return errors.As(err, &nowhere) ||
		bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted)
}

// taken reports whether S3 says that a condition does not hold. gocloud.dev reports that, too, as NotFound if the text
// contains 301, as one request id in some thousands does.
func taken(err error) bool {
	var amazon smithy.APIError
	return errors.As(err, &amazon) && amazon.ErrorCode() == "PreconditionFailed"
}

// Damaged reports whether a blob read from S3 fails S3's own checksum. The SDK checks it, but its error type is in an
// internal package, so only the type's name identifies it.
func Damaged(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err).String() == "checksum.validationError" {
			return true
		}
	}
	return false
}

// missingKeys are S3's error codes for a missing key. Source: docs.aws.amazon.com, Amazon S3 API reference, "Error
// responses", 2026-11.
var missingKeys = []string{"NoSuchKey", "NotFound", "ObjectNotInActiveTierError"}

// only refuses parameters that an address scheme does not have, and repeated ones.
func only(query url.Values, what string, names ...string) error {
	for name, values := range query {
		if !slices.Contains(names, name) || len(values) > 1 {
			return fmt.Errorf("%w: %s takes %s and prefix, once each; not %s", ErrURL, what, strings.Join(names, ", "), name)
		}
	}
	return nil
}

// endpointOf parses the address of a user's own service.
func endpointOf(text string) (*url.URL, error) {
	u, ok := weburl.Parse(text)
	if !ok || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("%w: the endpoint is not http://HOST:PORT or https://HOST", ErrURL)
	}
	return u, nil
}

// within reports whether a service is reached by TLS and below one of the domains: credentials that anybody could use
// go nowhere else.
func within(u *url.URL, domains ...string) bool {
	return u.Scheme == "https" && slices.ContainsFunc(domains, func(d string) bool {
		return strings.HasSuffix("."+strings.ToLower(u.Hostname()), "."+d)
	})
}
