//go:build !local

package blob

import (
	"errors"
	"net/http"
	"net/url"
)

// sasCarrier adds a shared access signature to each request where it is sent, and nowhere before: the errors of
// net/http hold the whole address, and a signature is good for whoever reads it there.
type sasCarrier struct {
	sas    string // without a question mark
	client *http.Client
}

// Do sends a request. It is what the kit of Azure asks of a transport.
func (c sasCarrier) Do(plain *http.Request) (*http.Response, error) {
	signed := plain.Clone(plain.Context())
	if signed.URL.RawQuery != "" {
		signed.URL.RawQuery += "&"
	}
	signed.URL.RawQuery += c.sas
	answer, err := c.client.Do(signed)
	var told *url.Error
	if errors.As(err, &told) {
		return nil, told.Err
	}
	if answer != nil {
		answer.Request = plain
	}
	return answer, err
}
