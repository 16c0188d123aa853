//go:build !local

package blob

import (
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

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"
)

// reachTime is how long a bucket may take to answer for the first time: the kits of the providers try again for
// minutes, or for ever, where nobody answers.
const reachTime = 30 * time.Second

// remote is a bucket as errors name it.
type remote struct {
	name string // "bucket models of Google Cloud Storage"
	at   string // who is asked for it
	keys string // how its credentials are given
}

// reach asks for the first page of what lies below a prefix of a bucket, and closes it where that does not come.
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

// explain says what is wrong with a bucket and what helps.
func (r remote) explain(ctx context.Context, err error) error {
	var unreached *net.OpError
	var nowhere *net.DNSError
	status := statusOf(err)
	switch {
	case ctx.Err() != nil:
		return err
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("%s: access denied: let these credentials list, read, write and delete there, or give others: %s: "+
			"%w", r.name, r.keys, err)
	case status == http.StatusNotFound:
		return fmt.Errorf("there is no %s: make it, or correct the name: %w", r.name, err)
	case errors.As(err, &unreached), errors.As(err, &nowhere), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %s does not answer: correct the address, or the way to it: %w", r.name, r.at, err)
	}
	return fmt.Errorf("%s: %w", r.name, err)
}

// unsigned says that there are no credentials for a bucket.
func (r remote) unsigned(err error) error {
	return fmt.Errorf("%s: no credentials: %s: %w", r.name, r.keys, err)
}

// statusOf is the HTTP status with which a provider has answered; 0: it has not.
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

// elsewhere reports whether what seems to be a blob that is not there is something else: a host without an address, a
// bucket that is gone, or an access that Google denies.
func elsewhere(err error) bool {
	var google *googleapi.Error
	if errors.As(err, &google) && google.Code != http.StatusNotFound {
		return true
	}
	var nowhere *net.DNSError
	var asked *smithy.OperationError
	if errors.As(err, &asked) { // gocloud.dev takes whatever has 301 in its text, such as a request's id, for NotFound
		var amazon smithy.APIError
		return !errors.As(err, &amazon) || !slices.Contains(missingKeys, amazon.ErrorCode())
	}
	return errors.As(err, &nowhere) ||
		bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted)
}

// taken reports whether S3 says that a condition does not hold: gocloud.dev takes that too for NotFound where its text
// has 301 in it, as the id of one answer in some thousands has.
func taken(err error) bool {
	var amazon smithy.APIError
	return errors.As(err, &amazon) && amazon.ErrorCode() == "PreconditionFailed"
}

// Damaged reports whether a blob of S3 that was read to its end is not what the store has noted of it. The SDK holds it
// to that, and has the error for it in a package that nobody else may import: its type's name is all there is.
func Damaged(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err).String() == "checksum.validationError" {
			return true
		}
	}
	return false
}

// missingKeys are what S3 answers where there is no such key. Source: docs.aws.amazon.com, Amazon S3 API reference,
// "Error responses", 2026-11.
var missingKeys = []string{"NoSuchKey", "NotFound", "ObjectNotInActiveTierError"}

// only refuses parameters that a kind of address does not have, and those that are given twice.
func only(query url.Values, what string, names ...string) error {
	for name, values := range query {
		if !slices.Contains(names, name) || len(values) > 1 {
			return fmt.Errorf("%w: %s takes %s and prefix, once each; not %s", ErrURL, what, strings.Join(names, ", "), name)
		}
	}
	return nil
}

// endpointOf reads the address of a service of the user's own.
func endpointOf(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("%w: the endpoint is not http://HOST:PORT or https://HOST", ErrURL)
	}
	return u, nil
}

// within reports whether a service is asked by TLS and is one of those below the domains: credentials that whoever
// answers could use are sent to no other.
func within(u *url.URL, domains ...string) bool {
	return u.Scheme == "https" && slices.ContainsFunc(domains, func(d string) bool {
		return strings.HasSuffix("."+strings.ToLower(u.Hostname()), "."+d)
	})
}
