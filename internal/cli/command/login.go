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
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
)

// LoginName is the file of the data folder that names the server of all commands. A login with a name has a file of its
// own: login-NAME.json.
const LoginName = "login.json"

// OwnServer is the value of --server for the data folder's own server, where somebody is logged in to another.
const OwnServer = "local"

var serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// LoginFile returns the file of the login with the name, or of the one without a name.
func LoginFile(dir, name string) (string, error) {
	switch {
	case name == "":
		return filepath.Join(dir, LoginName), nil
	case name == OwnServer || !serverName.MatchString(name):
		return "", fmt.Errorf("%q names no server: use up to 63 small letters, digits and hyphens, such as prod, and not %s",
			name, OwnServer)
	}
	return filepath.Join(dir, "login-"+name+".json"), nil
}

// logins returns the names of the logins that have one.
func logins(dir string) (names []string) {
	files, _ := filepath.Glob(filepath.Join(dir, "login-*.json")) // the pattern is valid
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "login-"), ".json"))
	}
	return names
}

// CompleteServer completes the names of logins.
func (a *App) CompleteServer(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return append(logins(a.Data), OwnServer), cobra.ShellCompDirectiveNoFileComp
}

// Login is the contents of that file.
type Login struct {
	Server string `json:"server"`
	Token  string `json:"token"`
	CA     string `json:"ca,omitempty"` // PEM certificates to trust besides the system's
}

// Far returns a client of the server that --server selects, else of the one in the environment, else of the one that
// the user logged in to; nil stands for the data folder's own.
func (a *App) Far(dir string) (*Client, error) {
	c, err := a.LoggedIn(dir)
	if err != nil || a.Server != "" {
		return c, err
	}
	l, err := fromEnvironment(c)
	if err != nil || l == nil {
		return c, err
	}
	return l.Client(dir)
}

// LoggedIn returns a client of the server that the user logged in to and that --server selects, or nil for the data
// folder's own.
func (a *App) LoggedIn(dir string) (*Client, error) {
	if a.Server == OwnServer {
		return nil, nil
	}
	file, err := LoginFile(dir, a.Server)
	if err != nil {
		return nil, fmt.Errorf("--server %w", err)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && a.Server != "" {
		return nil, fmt.Errorf("--server %s: you are not logged in to it: scrimp login URL --as %s (logins: %s)", a.Server,
			a.Server, strings.Join(append(logins(dir), OwnServer), ", "))
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var l Login
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: scrimp login writes it again", file, err)
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
