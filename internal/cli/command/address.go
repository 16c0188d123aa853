package command

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"scrimp/internal/lib/weburl"
)

// ParseAddress parses the address of a server. The error for one without http or https says which to write: a server on
// this machine usually speaks http.
func ParseAddress(text string) (*url.URL, error) {
	if u, ok := weburl.Parse(strings.TrimRight(text, "/")); ok {
		return u, nil
	}
	bare, err := url.Parse("//" + strings.TrimRight(text, "/"))
	switch {
	case err != nil || bare.Hostname() == "" || strings.Contains(text, "://"):
		return nil, fmt.Errorf("address %q: write https://HOST[:PORT], or http://HOST[:PORT] for a server without TLS", text)
	case IsLoopback(bare):
		return nil, fmt.Errorf("address %q: write http://%s, or https:// if the server speaks TLS", text, bare.Host)
	}
	return nil, fmt.Errorf("address %q: write https://%s, or http:// if the server has no TLS", text, bare.Host)
}

// IsLoopback reports whether an address is of this machine.
func IsLoopback(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// fromEnvironment returns the server and token that SCRIMP_SERVER and SCRIMP_TOKEN name, or nil if the environment has
// no token. Inside a job it returns nil: the program of a job works with no server but its agent. A token without a
// server is an error unless another login is there, because scrimp would work on another server than its user means.
func fromEnvironment(login *Client) (*Login, error) {
	at, token := os.Getenv("SCRIMP_SERVER"), os.Getenv("SCRIMP_TOKEN")
	switch {
	case token == "" || os.Getenv("SCRIMP_JOB") != "" || at == "" && login != nil:
		return nil, nil
	case at == "":
		return nil, errors.New("SCRIMP_TOKEN is set and SCRIMP_SERVER is not: set SCRIMP_SERVER to the address of the " +
			"server, or unset SCRIMP_TOKEN; --server local uses the data folder's own server")
	}
	u, err := ParseAddress(at)
	if err != nil {
		return nil, fmt.Errorf("SCRIMP_SERVER: %w", err)
	}
	return &Login{Server: u.String(), Token: token}, nil
}
