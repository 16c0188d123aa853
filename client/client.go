// Package client asks a scrimp server: it submits jobs, follows them and says
// what they cost. It is a thin layer over the HTTP API, which GET
// /v1/openjson describes.
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

// Client is good for any number of goroutines.
type Client struct {
	base, token string
	http        *http.Client
}

// New returns a client of the server at an address such as
// https://scrimp.example.com. The token is one of scrimp tokens new. A nil
// client is http.DefaultClient; a timeout of its own also ends streams.
func New(address, token string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{strings.TrimRight(address, "/"), token, h}
}

// Send uploads a work folder, a tar file in gzip, for a submission that follows within a day.
func (c *Client) Send(ctx context.Context, folder io.Reader) (work string, err error) {
	r, err := c.Open(ctx, http.MethodPost, "/v1/work", "application/gzip", folder)
	if err != nil {
		return "", err
	}
	v, err := decode[Work](r)
	return v.Work, err
}

// Submit submits a job. With a Key it can be repeated: the same key submits once, and so Submit repeats it itself, for
// four seconds, where the connection breaks before the answer has come.
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

// firstPause is how long Submit waits before it repeats itself; each pause is twice as long as the one before. Tests
// make it smaller.
var firstPause = 250 * time.Millisecond

// isCutOff reports whether a request may have been done although err came instead of its answer.
func isCutOff(err error) bool {
	if at, ok := errors.AsType[*StatusError](err); ok { // of a proxy
		return at.Status == http.StatusBadGateway || at.Status == http.StatusGatewayTimeout
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op != "dial" || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// SubmitAll submits 1 to 1000 jobs without work folders or secrets in one transaction:
// all, or none. Each with a Key of its own, it can be repeated.
func (c *Client) SubmitAll(ctx context.Context, list []Submission) ([]Job, error) {
	return ask[[]Job](ctx, c, http.MethodPost, "/v1/jobs/batch", list)
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return ask[Job](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id), nil)
}

// page is how many jobs are asked for at once.
const page = 200

// Jobs lists the jobs that the token's user sees, oldest first, a page at a time.
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

// JobsPage returns a page of the jobs that the user sees, as the parameters of GET /v1/jobs say, and
// what to give as after, or before, for the next one; "": there is none.
func (c *Client) JobsPage(ctx context.Context, q url.Values) (list []Job, next string, err error) {
	r, err := c.Open(ctx, http.MethodGet, "/v1/jobs?"+q.Encode(), "", nil)
	if err != nil {
		return nil, "", err
	}
	list, err = decode[[]Job](r)
	return list, r.Header.Get("Scrimp-Next"), err
}

// Watch yields a job at each change until it is closed: over, and costing
// nothing any more. An error ends it; it can be watched again.
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

// noEnd is for a stream that should have gone on.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Event is a job as an event of the server's log has left it.
type Event struct {
	ID  uint64 // give it to Events to go on after it; 0: progress between events
	Job Job
}

// Events yields the jobs that the user sees as they change, after an event, or
// from now on where after is 0. An error ends it; go on after the last ID.
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
				e.ID, _ = strconv.ParseUint(value, 10, 64) // 0 is one without
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

// A LogOption says of which machine's output Logs is.
type LogOption func(url.Values)

// OfNode is the output of one machine of a gang, from 0.
func OfNode(node int) LogOption {
	return func(v url.Values) { v.Set("node", strconv.Itoa(node)) }
}

// OfAllNodes is the output of all machines of a gang, each line after the number of its machine:
// "[2] loss 0.5". It has no offset.
func OfAllNodes() LogOption { return func(v url.Values) { v.Set("node", "all") } }

// Logs returns the output of a job over all its attempts, from an offset in
// bytes; follow goes on until the job is closed. The caller closes it. Of a gang it is that
// of node 0 unless an option says otherwise.
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

// End ends a job: save keeps a checkpoint first, otherwise it ends at once.
func (c *Client) End(ctx context.Context, id string, save bool) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/end", End{Save: save})
}

// Approve lets a job run that waits for approval; the reason is for the audit trail.
func (c *Client) Approve(ctx context.Context, id, reason string) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/approve", Review{Reason: reason})
}

// Reject ends a job that waits for approval; the reason, which must be given, is for its submitter.
func (c *Client) Reject(ctx context.Context, id, reason string) (Job, error) {
	return ask[Job](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/reject", Review{Reason: reason})
}

// Costs says what was spent, by team, project, user, kind, provider, region, SKU, category, job or tag:KEY, within a
// span of market time until now such as 7d; "" is from the beginning.
func (c *Client) Costs(ctx context.Context, by, since string) (Costs, error) {
	return ask[Costs](ctx, c, http.MethodGet, "/v1/costs?"+url.Values{"by": {by}, "since": {since}}.Encode(), nil)
}

// Budgets lists the limits that the token's user may know of, with what is spent and held.
func (c *Client) Budgets(ctx context.Context) (Budgets, error) {
	return ask[Budgets](ctx, c, http.MethodGet, "/v1/budgets", nil)
}

// Receipt says what a job has cost, and why.
func (c *Client) Receipt(ctx context.Context, id string) (Receipt, error) {
	return ask[Receipt](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/receipt", nil)
}

// Metric lists what a job's programs said of the metric that it is judged by: every value, in order.
func (c *Client) Metric(ctx context.Context, id string) (MetricValues, error) {
	return ask[MetricValues](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/metric", nil)
}

// Do sends in as JSON and reads the answer into out; either may be nil. It is for what has
// no method of its own.
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

// Limits of what a server says, which may be another than it seems: no answer takes all memory here.
var mostAnswer int64 = 256 << 20 // bytes of an answer; tests make it smaller

const mostLine = 4 << 20 // bytes of one of many that follow one another

// errLong is an answer that is longer than any that a server gives.
var errLong = errors.New("it is longer than an answer of a scrimp server: is it one?")

// limited reads so much and then fails.
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

// Open sends a body of that media type as it is and returns an answer that is no problem,
// whose body the caller closes. Its error is a *Problem, a *StatusError, or that there was no answer.
func (c *Client) Open(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
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
		return nil, fmt.Errorf("ask the server: %w", err)
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
