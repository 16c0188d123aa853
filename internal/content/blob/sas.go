//go:build !local

package blob

import (
	"errors"
	"net/http"
	"net/url"
)

// sasCarrier adds a shared access signature to each request at the last moment: errors of net/http contain the whole
// address, and a signature works for anybody who reads it there.
type sasCarrier struct {
	sas    string // without a question mark
	client *http.Client
}

// Do sends a request. It implements the Azure SDK's transport.
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
