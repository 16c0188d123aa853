package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show"
)

// loginName is the file of the data folder that says which server commands use.
const loginName = "login.json"

// login is what it holds.
type login struct {
	Server string `json:"server"`
	Token  string `json:"token"`
	CA     string `json:"ca,omitempty"` // certificates in PEM, beside the system's
}

// far returns a client of the server that was logged in to; nil where none was.
func far(dir string) (*client, error) {
	text, err := os.ReadFile(filepath.Join(dir, loginName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var l login
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: scrimp login writes it anew", filepath.Join(dir, loginName), err)
	}
	return l.client(dir)
}

func (l login) client(dir string) (*client, error) {
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
	return &client{base: l.Server, dir: dir, far: true, Client: api.New(l.Server, l.Token, &http.Client{Transport: t,
		// the token goes nowhere else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})}, nil
}

func (a *app) loginCmd() *cobra.Command {
	var fromInput bool
	var ca string
	cmd := &cobra.Command{Use: "login URL", Short: "Use a server that others use too", Args: takes("URL"),
		GroupID: groupShare,
		Long: "Keeps the address of a server and your token in the data folder, in a file that you alone can read: " +
			"from then on every command works against that server. The token is asked for, or taken from the environment " +
			"variable SCRIMP_TOKEN; an admin makes it with scrimp tokens new." + plainExit,
		Example: "  scrimp login https://scrimp.example.com\n  scrimp login http://127.0.0.1:7077 --token-stdin < token",
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(strings.TrimRight(args[0], "/"))
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return fmt.Errorf("address %q: write https://HOST[:PORT]", args[0])
			}
			if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
				a.notef("Warning: the token passes in the clear to %s. Take https where you can.\n", host)
			}
			l := login{Server: u.String(), Token: os.Getenv("SCRIMP_TOKEN")}
			if fromInput || l.Token == "" {
				if !fromInput {
					a.notef("Token: ")
				}
				line, err := bufio.NewReader(a.in).ReadString('\n')
				if l.Token = strings.TrimSpace(line); l.Token == "" {
					return fmt.Errorf("no token was given (%w): an admin makes one with scrimp tokens new USER", err)
				}
			}
			if ca != "" {
				text, err := os.ReadFile(ca)
				if err != nil {
					return fmt.Errorf("read the certificates: %w", err)
				}
				l.CA = string(text)
			}
			return a.login(cmd.Context(), l)
		}}
	cmd.Flags().BoolVar(&fromInput, "token-stdin", false, "read the token from the input (default: ask for it)")
	cmd.Flags().StringVar(&ca, "ca", "", "`file` of certificates in PEM to trust (default: the system's alone)")
	_ = cmd.RegisterFlagCompletionFunc("ca", files("pem", "crt"))
	return cmd
}

// login keeps what the server has shown to be good.
func (a *app) login(ctx context.Context, l login) error {
	dir, err := filepath.Abs(a.data)
	if err != nil {
		return err
	}
	c, err := l.client(dir)
	if err != nil {
		return err
	}
	var me api.Me
	if err := c.do(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		return fmt.Errorf("log in to %s: %w", l.Server, err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w: give another with --data", err)
	}
	path := filepath.Join(dir, loginName)
	_ = os.Remove(path) // one that others could read would stay so
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	if a.json {
		return a.print(me)
	}
	a.printf("%s", show.Me(l.Server, me, a.place()))
	return nil
}

func (a *app) logoutCmd() *cobra.Command {
	return &cobra.Command{Use: "logout", Short: "Forget the server and the token", Args: takes(), GroupID: groupShare,
		Long: "Revokes the token at its server, if that answers, and forgets both. Commands work with the data folder's " +
			"own server again." + plainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := far(a.data)
			if c == nil && err == nil {
				return errors.New("nobody is logged in: scrimp login URL does that")
			}
			revoked := false
			if c != nil {
				var me api.Me
				if c.do(cmd.Context(), http.MethodGet, "/v1/me", nil, &me) == nil && me.Token != "" {
					revoked = c.do(cmd.Context(), http.MethodDelete, "/v1/tokens/"+me.Token, nil, nil) == nil
				}
			}
			if err := os.Remove(filepath.Join(a.data, loginName)); err != nil {
				return fmt.Errorf("forget the token: %w", err)
			}
			if a.json {
				return a.print(map[string]bool{"logged_in": false, "revoked": revoked})
			}
			if revoked {
				a.printf("Logged out. The token is revoked.\n")
			} else {
				a.printf("Logged out. The token was not revoked: the server did not answer, or knows it no more.\n")
			}
			return nil
		}}
}
