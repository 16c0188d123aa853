package oidc

import (
	"fmt"
	"net/http"
	"time"
)

// Bounds on answers of the provider.
const (
	patience   = 10 * time.Second // for one answer
	mostAnswer = 1 << 20          // bytes of one answer
)

// outward is the transport of requests to the provider. It uses TLS only, unless the issuer is on this machine, and
// bounds what it reads.
type outward struct {
	plain bool // the issuer is on this machine, over plain HTTP
	by    http.RoundTripper
}

// RoundTrip sends a request.
func (o outward) RoundTrip(r *http.Request) (*http.Response, error) {
	if !o.allows(r.URL.Scheme, r.URL.Hostname()) {
		return nil, fmt.Errorf("the provider names an address at %s without TLS", r.URL.Host)
	}
	got, err := o.by.RoundTrip(r)
	if err == nil {
		got.Body = http.MaxBytesReader(nil, got.Body, mostAnswer)
	}
	return got, err
}

// allows reports whether requests, and the browsers of users, may go to an address of the provider.
func (o outward) allows(scheme, host string) bool {
	return host != "" && (scheme == "https" || scheme == "http" && o.plain && loopback(host))
}

// client returns an HTTP client that follows no redirect: it would repeat the client's secret elsewhere.
func (o outward) client() *http.Client {
	return &http.Client{Transport: o, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
