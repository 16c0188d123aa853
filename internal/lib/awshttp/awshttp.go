//go:build !local

// Package awshttp is the HTTP client by which AWS' SDK is used.
package awshttp

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Client is the SDK's own client, but for how a request's body is read. The SDK closes the body once there is an
// answer; its WriteTo then says io.EOF, which net/http takes for a failed write, so that it cuts the connection while
// the answer is read. Servers that answer within microseconds, as those of tests do, met that several times a minute.
// A body that can only be read ends as one does.
func Client() aws.HTTPClient { return Over(sdkhttp.NewBuildableClient()) }

// Over is Client for one that a configuration has: it knows the certificates to trust. nil is the SDK's own.
func Over(of aws.HTTPClient) aws.HTTPClient {
	if of == nil {
		return Client()
	}
	return client{of}
}

type client struct{ of aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.of.Do(r)
}
