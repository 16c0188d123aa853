//go:build !local

// Package awshttp provides the HTTP client that the AWS SDK uses.
package awshttp

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Client returns the SDK's own client with a change in how it reads a request's body. The SDK closes the body once the
// answer has arrived. The body's WriteTo then returns io.EOF, which net/http treats as a failed write, so it cuts the
// connection while the answer is read. With servers that answer within microseconds, as in tests, that happened several
// times a minute. A body that offers only Read ends normally.
func Client() aws.HTTPClient { return Over(sdkhttp.NewBuildableClient()) }

// Over is like Client, for the client of a configuration, which knows the certificates to trust. nil stands for the
// SDK's own client.
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
