// Package weburl parses the URLs of web services.
package weburl

import "net/url"

// Parse parses a URL. ok is false unless it begins with http or https and names a host.
func Parse(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
