package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"scrimp/internal/lib/wait"
)

// Client fetches pages with a size limit, a timeout for each try, and retries if the source is busy or the network
// fails.
type Client struct {
	HTTP  *http.Client // nil uses one with timeouts
	Limit int64        // uncompressed bytes of a page
	Tries int
	Wait  func(context.Context, time.Duration) error
	Agent string
}

// Default returns a client for pages of up to limit bytes.
func Default(version string, limit int64) Client {
	return Client{
		HTTP: &http.Client{Timeout: 15 * time.Minute, CheckRedirect: moved,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: 30 * time.Second,
				TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: time.Minute}},
		Limit: limit, Tries: 4, Agent: "scrimp/" + version,
		Wait: wait.For,
	}
}

// moved follows redirects, but not from TLS to plain HTTP. It removes the Referer, because the original query may
// contain a key.
func moved(r *http.Request, before []*http.Request) error {
	r.Header.Del("Referer")
	if len(before) > 5 || before[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("it leads elsewhere, too often or without TLS")
	}
	return nil
}

// longestWait bounds the wait between two tries that a source may request.
const longestWait = time.Minute

// errTooLarge reports a page beyond the size limit.
var errTooLarge = errors.New("the page is larger than the limit")

// get opens the page at link. The caller closes it.
func (c Client) get(ctx context.Context, link string) (io.ReadCloser, error) {
	shown := redact(link)
	for try, wait := 1, time.Second; ; try, wait = try+1, wait*2 {
		body, after, err := c.once(ctx, link)
		if err == nil {
			return body, nil
		}
		var again retry
		if !errors.As(err, &again) || try >= c.Tries || ctx.Err() != nil {
			return nil, fmt.Errorf("fetch %s: %w", shown, err)
		}
		if err := c.Wait(ctx, min(max(wait, after), longestWait)); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", shown, err)
		}
	}
}

// retry marks an error after which another try may succeed.
type retry struct{ error }

func (r retry) Unwrap() error { return r.error }

func (c Client) once(ctx context.Context, link string) (io.ReadCloser, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, 0, errors.New("not a URL")
	}
	req.Header.Set("User-Agent", c.Agent)
	r, err := c.HTTP.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the wrapper's text contains the URL with its key
		}
		return nil, 0, retry{err}
	}
	if r.StatusCode == http.StatusOK {
		return &limited{r.Body, c.Limit}, 0, nil
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 200))
	_ = r.Body.Close()
	err = fmt.Errorf("%s: %.120q", r.Status, text)
	if r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500 {
		seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
		return nil, time.Duration(min(max(seconds, 0), 3600)) * time.Second, retry{err}
	}
	return nil, 0, err
}

// page reads a whole page.
func (c Client) page(ctx context.Context, link string) ([]byte, error) {
	for try := 1; ; try++ {
		body, err := c.get(ctx, link)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(body)
		_ = body.Close()
		if err == nil {
			return b, nil
		}
		if errors.Is(err, errTooLarge) || try >= c.Tries || ctx.Err() != nil {
			return nil, fmt.Errorf("fetch %s: %w", redact(link), err)
		}
	}
}

// redact removes the query from a URL, because it may contain a key.
func redact(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return "the page"
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// limited is a body that fails after left bytes.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.ReadCloser.Read(one[:]); n == 0 && err != nil {
			return 0, err
		}
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}
