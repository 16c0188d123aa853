// Package rest is a Slurm client for slurmrestd, in each known version of its API.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
)

// Setting says how to reach slurmrestd.
type Setting struct {
	URL string `yaml:"url"` // unix:///run/slurmrestd.sock, https://HOST, or http:// on this machine
	// User owns the jobs; empty means the user of this process.
	User string `yaml:"user,omitempty"`
	// TokenFile holds a token of that user, as scontrol token prints it; empty means that the socket identifies the
	// caller.
	TokenFile string `yaml:"token_file,omitempty"`
	Version   string `yaml:"version,omitempty"` // such as v0.0.38; empty: the first that both sides know
}

// Tried is the version of slurmrestd's API that has been tested on a real cluster.
const Tried = "v0.0.38"

// versions lists the supported versions; all except Tried follow their documentation only. The client uses the first
// one that the cluster supports: the tested one, or otherwise the nearest to the cluster's own.
var versions = []string{Tried, "v0.0.41", "v0.0.40", "v0.0.39"}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?$`)

// Check validates the settings; it reads no file.
func (r *Setting) Check() error {
	if err := r.checkAddress(); err != nil {
		return err
	}
	switch {
	case r.TokenFile != "" && !filepath.IsAbs(r.TokenFile):
		return fmt.Errorf("token_file is %q: write an absolute path", r.TokenFile)
	case r.User != "" && !userName.MatchString(r.User):
		return fmt.Errorf("user is %q: write it as id -un prints it", r.User)
	case r.Version != "" && !slices.Contains(versions, r.Version):
		return fmt.Errorf("version is %q: write one of %s", r.Version, strings.Join(versions, ", "))
	}
	return nil
}

// checkAddress validates the URL, and that a token goes to nobody else.
func (r *Setting) checkAddress() error {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || !slices.Contains([]string{"unix", "http", "https"}, u.Scheme):
		return fmt.Errorf("url is %q: write unix:///run/slurmrestd.sock, or https://HOST", r.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: remove user, password and query: token_file names the file with the token")
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return nil
	case u.Scheme == "unix":
		return fmt.Errorf("url is %q: write the socket's absolute path, as in unix:///run/slurmrestd.sock", r.URL)
	case u.Hostname() == "":
		return fmt.Errorf("url is %q: write a host, as in https://HOST", r.URL)
	case r.TokenFile == "":
		return errors.New("token_file is missing: (umask 077; scontrol token lifespan=86400 > FILE) makes one, and " +
			"slurmrestd on a port identifies callers by it")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return fmt.Errorf("%s would carry the token in the clear: write https://, or reach its port through "+
			"ssh -N -L 6820:localhost:6820 %s, and write http://localhost:6820", r.URL, u.Hostname())
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Client uses slurmrestd.
type Client struct {
	Setting
	base string // prefix of its URLs
	HTTP *http.Client
	most int64 // limit on the bytes read of an answer

	finding sync.Mutex
	version string // API version; empty: not determined yet; guarded by finding
}

var _ scheduler.Scheduler = (*Client)(nil)

// New returns a client without contacting slurmrestd.
func New(r *Setting) *Client {
	c := &Client{Setting: *r, base: strings.TrimSuffix(r.URL, "/"), version: r.Version, most: maxAnswer}
	if c.User == "" {
		if u, err := user.Current(); err == nil {
			c.User = u.Username
		}
	}
	t := &http.Transport{MaxIdleConns: 2, IdleConnTimeout: 10 * time.Second}
	if path, ok := strings.CutPrefix(r.URL, "unix://"); ok {
		c.base = "http://slurmrestd"
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	} else if strings.HasPrefix(r.URL, "https:") {
		t.Proxy = http.ProxyFromEnvironment
	}
	c.HTTP = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect target would get the token
	}}
	return c
}

const (
	// maxAnswer bounds the bytes of an answer: about 20,000 jobs of all users.
	maxAnswer = 64 << 20
	maxToken  = 16 << 10
)

// problem is one of the errors in an answer.
type problem struct {
	Error       string `json:"error"`
	Description string `json:"description"`
}

// unspecified is slurmrestd's message for errors without one, such as an invalid token.
const unspecified = "Unspecified error"

// said joins slurmrestd's error messages; empty if there are none.
func said(problems []problem) string {
	var all []string
	for _, p := range problems {
		for _, text := range []string{p.Error, p.Description} {
			if text != "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, "; ")
}

// errStatus is the status of an error response.
type errStatus int

func (e errStatus) Error() string { return fmt.Sprintf("it answers %d", int(e)) }

// ask sends a request below a version of the API, such as GET /slurm/{version}/jobs, and decodes its answer. If
// slurmrestd reports errors, ask still decodes the rest of the answer.
func (c *Client) ask(ctx context.Context, method, service, path string, body, into any) error {
	version, err := c.speaks(ctx)
	if err != nil {
		return err
	}
	answer, err := c.send(ctx, method, "/"+service+"/"+version+path, body)
	var problems struct {
		Errors []problem `json:"errors"`
	}
	if bad := json.Unmarshal(answer, &problems); err == nil && bad != nil {
		return &scheduler.Error{Command: "slurmrestd", Err: fmt.Errorf("cannot read its answer: %w", bad)}
	}
	if err == nil && into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			return &scheduler.Error{Command: "slurmrestd", Err: fmt.Errorf("cannot read its answer: %w", err)}
		}
	}
	text := said(problems.Errors)
	switch {
	case err == nil && text == "":
		return nil
	case c.unknown(err, text):
		err = c.unknownAs()
	case text != "":
		err = nil // the answer itself describes the error
	}
	return &scheduler.Error{Command: "slurmrestd", Text: text, Err: err}
}

// errUnknown says that slurmrestd does not recognise the caller.
var errUnknown = errors.New("it does not recognise the caller")

// unknown reports whether an error means errUnknown.
func (c *Client) unknown(err error, text string) bool {
	return errors.Is(err, errStatus(http.StatusUnauthorized)) || errors.Is(err, errStatus(http.StatusForbidden)) ||
		strings.Contains(text, "uthentication") || c.TokenFile != "" && strings.HasPrefix(text, unspecified)
}

// unknownAs returns errUnknown with the fix.
func (c *Client) unknownAs() error {
	if c.TokenFile == "" {
		return fmt.Errorf("%w: run slurmrestd as %s (slurmrestd -a rest_auth/local unix:%s), or set token_file",
			errUnknown, c.User, strings.TrimPrefix(c.URL, "unix://"))
	}
	return fmt.Errorf("%w: slurmrestd rejects the token of %s, or it has expired: %s", errUnknown, c.User, c.renew())
}

// renew returns the command that creates a token.
func (c *Client) renew() string {
	return fmt.Sprintf("(umask 077; scontrol token lifespan=86400 > %s) makes one, on a login node", c.TokenFile)
}

// send sends one request and reads its answer.
func (c *Client) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scheduler.AnswerTime,
		fmt.Errorf("no answer within %v", scheduler.AnswerTime))
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.TokenFile != "" {
		token, err := c.token()
		if err != nil {
			return nil, err
		}
		q.Header.Set("X-SLURM-USER-NAME", c.User)
		q.Header.Set("X-SLURM-USER-TOKEN", token)
	}
	answer, err := c.HTTP.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(answer.Body, c.most+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case int64(len(b)) > c.most:
		return nil, fmt.Errorf("its answer is longer than %d MiB: leave rest out, and run the server where sbatch "+
			"works", c.most>>20)
	case answer.StatusCode/100 != 2:
		return b, errStatus(answer.StatusCode)
	}
	return b, nil
}

// token reads the token again each time, because it may have been renewed.
func (c *Client) token() (string, error) {
	f, err := os.Open(c.TokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w: %s", errToken, err, c.renew())
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errToken, err)
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0) {
		return "", fmt.Errorf("%w: others read %s: chmod 600 %s, and make a new one", errToken, c.TokenFile, c.TokenFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errToken, err)
	}
	token := strings.TrimPrefix(strings.TrimSpace(string(b)), "SLURM_JWT=")
	if token == "" || len(b) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%w: %s holds none: %s", errToken, c.TokenFile, c.renew())
	}
	if end := expiry(token); !end.IsZero() && time.Now().After(end) {
		return "", fmt.Errorf("%w: it expired at %v: %s", errToken, end.Format(time.RFC3339), c.renew())
	}
	return token, nil
}

// expiry returns the expiry time in a token; zero if it contains none.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		End number `json:"exp"`
	}
	if err != nil || json.Unmarshal(b, &claims) != nil {
		return time.Time{}
	}
	return claims.End.time()
}

// errToken says that a token may not be sent.
var errToken = errors.New("cannot use the token")

// speaks determines the API version that both sides know.
func (c *Client) speaks(ctx context.Context) (string, error) {
	c.finding.Lock()
	defer c.finding.Unlock()
	if c.version != "" {
		return c.version, nil
	}
	answer, err := c.send(ctx, http.MethodGet, "/openapi/v3", nil)
	var spec struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &spec)
	}
	if c.unknown(err, "") {
		err = c.unknownAs()
	}
	if err != nil {
		return "", &scheduler.Error{Command: "slurmrestd", Err: fmt.Errorf("ask for its versions: %w", err)}
	}
	var has []string
	for path := range spec.Paths {
		if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "slurm" && !slices.Contains(has, parts[2]) {
			has = append(has, parts[2])
		}
	}
	slices.Sort(has)
	for _, v := range versions {
		if slices.Contains(has, v) {
			c.version = v
			return v, nil
		}
	}
	return "", &scheduler.Error{Command: "slurmrestd", Err: fmt.Errorf("it supports %s, and scrimp supports %s: remove "+
		"rest "+
		"out, and run the server where sbatch works", cmp.Or(strings.Join(has, ", "), "no version"),
		strings.Join(versions, ", "))}
}
