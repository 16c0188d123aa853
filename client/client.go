// Package client calls a scrimp server: it submits jobs, follows them and reports their costs. It is a thin layer
// over the HTTP API, which GET /v1/openapi.json describes.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client is safe for concurrent use.
type Client struct {
	base, token string
	http        *http.Client
}

// New returns a client for the server at an address such as https://scrimp.example.com. The token comes from scrimp
// tokens new. If h is nil, the client uses http.DefaultClient; a timeout of h also ends streams.
func New(address, token string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{strings.TrimRight(address, "/"), token, h}
}

// Send uploads a work folder, a tar file in gzip, for a submission within a day.
func (c *Client) Send(ctx context.Context, folder io.Reader) (work string, err error) {
	r, err := c.Open(ctx, http.MethodPost, "/v1/work", "application/gzip", folder)
	if err != nil {
		return "", err
	}
	v, err := decode[Work](r)
	return v.Work, err
}

// Submit submits a job. The server accepts a Key once, so a call with a Key can be repeated. Submit itself retries
// such a call for four seconds if the connection breaks before the response.
func (c *Client) Submit(ctx context.Context, s Submission) (Job, error) {
	return submitted[Job](ctx, c, "/v1/jobs", s)
}

func submitted[T any](ctx context.Context, c *Client, path string, s Submission) (T, error) {
	for pause := firstPause; ; pause *= 2 {
		v, err := ask[T](ctx, c, http.MethodPost, path, s)
		if s.Key == "" || pause > 8*firstPause || ctx.Err() != nil || !isCutOff(err) {
			return v, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return v, err
		}
	}
}

// firstPause is the wait before Submit's first retry; it doubles each time. Tests shorten it.
var firstPause = 250 * time.Millisecond

// isCutOff reports whether the server may have processed a request that failed with err.
func isCutOff(err error) bool {
	if at, ok := errors.AsType[*StatusError](err); ok { // from a proxy
		return at.Status == http.StatusBadGateway || at.Status == http.StatusGatewayTimeout
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op != "dial" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// SubmitAll submits 1 to 1000 jobs without work folders or secrets in one transaction: all or none. If each has a
// Key of its own, the call can be repeated.
func (c *Client) SubmitAll(ctx context.Context, list []Submission) ([]Job, error) {
	return ask[[]Job](ctx, c, http.MethodPost, "/v1/jobs/batch", list)
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return ask[Job](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id), nil)
}

// page is the number of jobs per request.
const page = 200

// Jobs lists the jobs that the token's user sees, oldest first. It reads them page by page.
func (c *Client) Jobs(ctx context.Context) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		for q := (url.Values{"limit": {strconv.Itoa(page)}}); ; {
			list, next, err := c.JobsPage(ctx, q)
			if err != nil {
				yield(Job{}, err)
				return
			}
			for _, j := range list {
				if !yield(j, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			q.Set("after", next)
		}
	}
}

// JobsPage returns a page of the jobs that the user sees, by the parameters of GET /v1/jobs. next is the value of
// after, or before, for the next page; "": no more.
func (c *Client) JobsPage(ctx context.Context, q url.Values) (list []Job, next string, err error) {
	return paged[Job](ctx, c, "/v1/jobs", q)
}

// paged returns a page of a list, and the value of the parameter that selects the next page.
func paged[T any](ctx context.Context, c *Client, path string, q url.Values) (list []T, next string, err error) {
	r, err := c.Open(ctx, http.MethodGet, path+"?"+q.Encode(), "", nil)
	if err != nil {
		return nil, "", err
	}
	list, err = decode[[]T](r)
	return list, r.Header.Get("Scrimp-Next"), err
}

// Watch yields a job at each change until it is closed: it has ended and can no longer cost anything. An error ends
// the sequence; call Watch again to go on.
func (c *Client) Watch(ctx context.Context, id string) iter.Seq2[Job, error] {
	return func(yield func(Job, error) bool) {
		r, err := c.Open(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/watch", "", nil)
		if err != nil {
			yield(Job{}, err)
			return
		}
		defer func() { _ = r.Body.Close() }()
		answer := &limited{from: r.Body}
		for d := json.NewDecoder(answer); ; {
			var j Job
			answer.left = mostLine
			if err := d.Decode(&j); err != nil {
				yield(Job{}, fmt.Errorf("watch %s: %w", id, noEnd(err)))
				return
			}
			if !yield(j, nil) || j.Closed {
				return
			}
		}
	}
}

// noEnd turns the end of an endless stream into an error.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Event is the state of a job after an event of the server's log.
type Event struct {
	ID  uint64 // for Events, to go on after it; 0: progress between events
	Job Job
}

// Events yields the jobs that the user sees as they change, after an event, or from now on if after is 0. An error
// ends the sequence; call Events with the last ID to go on.
func (c *Client) Events(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		path := "/v1/events"
		if after > 0 {
			path += "?after=" + strconv.FormatUint(after, 10)
		}
		r, err := c.Open(ctx, http.MethodGet, path, "", nil)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer func() { _ = r.Body.Close() }()
		var e Event
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.ID, _ = strconv.ParseUint(value, 10, 64) // 0: no ID
			case "data":
				err := json.Unmarshal([]byte(value), &e.Job)
				if !yield(e, err) || err != nil {
					return
				}
				e = Event{}
			}
		}
		err = lines.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		yield(Event{}, fmt.Errorf("follow the events: %w", err))
	}
}

// A LogOption selects the machine whose output Logs returns.
type LogOption func(url.Values)

// OfNode selects the output of one machine of a gang, counted from 0.
func OfNode(node int) LogOption {
	return func(v url.Values) { v.Set("node", strconv.Itoa(node)) }
}

// OfAllNodes selects the output of all machines of a gang, each line with its machine's number before it: "[2] loss
// 0.5". It ignores offsets.
func OfAllNodes() LogOption { return func(v url.Values) { v.Set("node", "all") } }

// Logs returns the output of a job over all its attempts, from an offset in bytes; with follow it goes on until the
// job is closed. The caller closes it. For a gang it is the output of node 0 unless an option selects another.
func (c *Client) Logs(ctx context.Context, id string, offset int64, follow bool, of ...LogOption) (io.ReadCloser,
	error) {
	query := url.Values{"offset": {strconv.FormatInt(offset, 10)}}
	if follow {
		query.Set("follow", "1")
	}
	for _, o := range of {
		o(query)
	}
	path := "/v1/jobs/" + url.PathEscape(id) + "/log?" + query.Encode()
	r, err := c.Open(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	return r.Body, nil
}

// End ends a job. With save, the job saves a checkpoint first; otherwise it ends at once.
func (c *Client) End(ctx context.Context, id string, save bool) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/end", End{Save: save})
}

// Approve lets a job run that waits for approval. The reason goes into the audit trail.
func (c *Client) Approve(ctx context.Context, id, reason string) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/approve", Review{Reason: reason})
}

// Reject ends a job that waits for approval. The reason is required and shown to the submitter.
func (c *Client) Reject(ctx context.Context, id, reason string) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/reject", Review{Reason: reason})
}

// Costs reports costs by team, project, user, kind, provider, region, SKU, category, job or tag:KEY, within a span
// of market time until now, such as 7d; "" is from the beginning.
func (c *Client) Costs(ctx context.Context, by, since string) (Costs, error) {
	return ask[Costs](ctx, c, http.MethodGet, Path("/v1/costs", url.Values{"by": {by}, "since": {since}}), nil)
}

// Budgets lists the limits that the token's user may see, with what is spent and held.
func (c *Client) Budgets(ctx context.Context) (Budgets, error) {
	return ask[Budgets](ctx, c, http.MethodGet, "/v1/budgets", nil)
}

// Receipt returns the account of a job: its costs and their reasons.
func (c *Client) Receipt(ctx context.Context, id string) (Receipt, error) {
	return ask[Receipt](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/receipt", nil)
}

// Metric lists the values that the job's programs reported for the metric that judges it, in order.
func (c *Client) Metric(ctx context.Context, id string) (MetricValues, error) {
	return ask[MetricValues](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/metric", nil)
}

// Curves samples the values of each metric that the job's programs reported.
func (c *Client) Curves(ctx context.Context, id string) (Curves, error) {
	return ask[Curves](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/curves", nil)
}

// Path adds the parameters that have a value to the path of a route. The server refuses a parameter without one.
func Path(path string, q url.Values) string {
	given := url.Values{}
	for name, values := range q {
		for _, v := range values {
			if v != "" {
				given.Add(name, v)
			}
		}
	}
	if len(given) == 0 {
		return path
	}
	return path + "?" + given.Encode()
}

// Do sends in as JSON and decodes the response into out; either may be nil. Use it for routes without a method of
// their own.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(b)
	}
	r, err := c.Open(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(&limited{r.Body, mostAnswer}).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer to %s %s: %w", method, path, err)
	}
	return nil
}

// Limits on responses, so that no server can exhaust the memory of its client.
var mostAnswer int64 = 256 << 20 // bytes of a response; tests lower it

const mostLine = 4 << 20 // bytes of one element of a stream

// errLong means that a response is longer than any of a scrimp server.
var errLong = errors.New("the response is longer than any of a scrimp server: check the address")

// limited reads up to left bytes and then fails.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// Open sends a body of the given media type and returns the response. The caller closes its body. The error is a
// *Problem, a *StatusError, or means that there was no response.
func (c *Client) Open(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	names, _, _ := strings.Cut(path, "?")
	for name := range strings.SplitSeq(names, "/") {
		if name == "." || name == ".." { // a server would take it for a step in the path
			return nil, fmt.Errorf("%s %s: %w", method, path, &Problem{Status: http.StatusNotFound,
				Title: fmt.Sprintf("%q is not a name", name), Fix: "give a name that a list shows, such as scrimp jobs"})
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	r, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call the server: %w", err)
	}
	if r.StatusCode < 300 {
		return r, nil
	}
	defer func() { _ = r.Body.Close() }()
	p := &Problem{}
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(p) != nil || p.Title == "" {
		return nil, &StatusError{method, path, r.StatusCode}
	}
	return nil, fmt.Errorf("%s %s: %w", method, path, p)
}

func ask[T any](ctx context.Context, c *Client, method, path string, in any) (v T, err error) {
	err = c.Do(ctx, method, path, in, &v)
	return v, err
}

func decode[T any](r *http.Response) (v T, err error) {
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(&limited{r.Body, mostAnswer}).Decode(&v); err != nil {
		return v, fmt.Errorf("read the server's answer: %w", err)
	}
	return v, nil
}
