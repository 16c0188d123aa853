package command

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	api "scrimp/client"
)

// LoginName is the file of the data folder that names the server of all commands.
const LoginName = "login.json"

// Login is the contents of that file.
type Login struct {
	Server string `json:"server"`
	Token  string `json:"token"`
	CA     string `json:"ca,omitempty"` // PEM certificates to trust besides the system's
}

// Far returns a client of the server that the user logged in to, or nil.
func Far(dir string) (*Client, error) {
	text, err := os.ReadFile(filepath.Join(dir, LoginName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var l Login
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: scrimp login writes it anew", filepath.Join(dir, LoginName), err)
	}
	return l.Client(dir)
}

// Client returns a client that uses the token.
func (l Login) Client(dir string) (*Client, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if l.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(l.CA)) {
			return nil, errors.New("the file of --ca holds no certificate in PEM")
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return &Client{Base: l.Server, Dir: dir, Far: true, Client: api.New(l.Server, l.Token, &http.Client{Transport: t,
		// Redirects must not forward the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}, nil
}
