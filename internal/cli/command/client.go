package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/engine/procs"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/server"
	"scrimp/internal/view/convert"
)

// Client talks to the server of a data folder, or to the one that the user logged in to.
type Client struct {
	*api.Client
	Base string // address of the server; http://scrimp stands for the folder's socket
	Dir  string
	Far  bool // after a login: the server may run on another machine
}

// ErrNoServer reports that no server answers.
var ErrNoServer = errors.New("no server answers")

// Open returns a client of the folder's server, or ErrNoServer.
func (a *App) Open(ctx context.Context) (*Client, error) {
	dir, err := filepath.Abs(a.Data)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", a.Data, err)
	}
	if c, err := a.Far(dir); c != nil || err != nil {
		return c, err
	}
	return here(ctx, dir)
}

// here returns a client of the server of a folder on this machine, or ErrNoServer.
func here(ctx context.Context, dir string) (*Client, error) {
	token, err := os.ReadFile(filepath.Join(dir, server.TokenName))
	if err != nil {
		return nil, fmt.Errorf("%w in %s", ErrNoServer, dir)
	}
	socket := filepath.Join(dir, server.SocketName)
	const base = "http://scrimp"
	c := &Client{Base: base, Dir: dir, Client: api.New(base, strings.TrimSpace(string(token)),
		&http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			},
		}})}
	if _, err := c.Server(ctx); err != nil {
		return nil, fmt.Errorf("%w in %s: %v", ErrNoServer, dir, err) //nolint:errorlint // the cause is for people
	}
	return c, nil
}

// Ensure returns a client of the folder's server and starts one if none answers. It asks a server of another build to
// hand over; the server's jobs keep running.
func (a *App) Ensure(ctx context.Context, market string) (*Client, error) {
	c, err := a.Open(ctx)
	var v api.Server
	if err == nil {
		v, err = c.answer(ctx)
	}
	switch {
	case err == nil && (c.Far || v.Shared || runsThis(v.PID) || v.Build == Build()):
		return c, hasMarket(v, market)
	case err == nil:
		if err := a.handOver(ctx, c, v.PID); err != nil {
			return nil, err
		}
	case !errors.Is(err, ErrNoServer):
		return nil, err
	}
	if market != "" { // before the folder exists
		if _, err := marketfile.Load(market); err != nil {
			return nil, err
		}
	}
	log := filepath.Join(a.Data, server.LogName)
	why, before := "the server did not start within 20 s: see "+log, sizeOf(log)
	var ended <-chan error
	// Another server takes over, or one must be started.
	if _, err := os.Stat(filepath.Join(a.Data, server.ElsewhereName)); err == nil {
		why = "no server of this folder answered within 20 s, and its log lies in PostgreSQL: start scrimp serve --db"
	} else if ended, err = a.spawn(market); err != nil {
		return nil, err
	}
	return a.begun(ctx, log, before, why, ended)
}

// answer returns the server's description. It retries a busy server of this folder for a quarter of a minute, because a
// busy server is neither of another build nor gone. A server that has just exited gives ErrNoServer.
func (c *Client) answer(ctx context.Context) (v api.Server, err error) {
	for range 5 { // attempts of 3 s each
		v, err = c.Server(ctx)
		if err == nil || c.Far || ctx.Err() != nil {
			return v, err
		}
		var wire *net.OpError
		switch {
		case errors.Is(err, context.DeadlineExceeded):
		case errors.As(err, &wire):
			return v, fmt.Errorf("%w in %s: %v", ErrNoServer, c.Dir, err) //nolint:errorlint // the cause is for people
		default:
			return v, err
		}
	}
	return v, fmt.Errorf("the server in %s runs and does not answer: %w", c.Dir, err)
}

// hasMarket refuses a market file that differs from the server's market.
func hasMarket(v api.Server, file string) error {
	if file == "" {
		return nil
	}
	wanted, err := marketfile.Load(file)
	if err == nil && wanted.Name != v.Market.Name {
		err = server.OtherMarket(file, v.Market.Name)
	}
	return err
}

// handOver stops a server of another build.
func (a *App) handOver(ctx context.Context, c *Client, pid int) error {
	a.Notef("The server in %s is another build: it is being replaced.\n", a.Data)
	if err := c.Do(ctx, http.MethodPost, "/v1/server/stop", api.StopServer{}, nil); err != nil {
		return err
	}
	return Gone(ctx, pid, server.Leaves)
}

// begun waits for a starting server and returns its client. If the server does not start, the error is its last
// complaint in the log after the byte before, or how its process ended, or why. ended gives the end of the process.
func (a *App) begun(ctx context.Context, log string, before int64, why string, ended <-chan error) (*Client, error) {
	said, end := time.Time{}, ""
	for begun := a.Now(); ; {
		c, err := a.Open(ctx)
		if err == nil {
			return c, nil
		}
		select {
		case err := <-ended:
			end = fmt.Sprintf("its process ended (%v) and wrote no error to %s", cmp.Or(err, errExited), log)
		default:
		}
		complains := cmp.Or(complaint(log, before), end)
		if complains != "" && said.IsZero() {
			said = a.Now()
		}
		switch { // if two servers start at once, one complains and the other answers
		case !said.IsZero() && a.Now().Sub(said) > 2*time.Second:
			return nil, errors.New("the server did not start: " + complains)
		case a.Now().Sub(begun) > 20*time.Second:
			return nil, errors.New(why)
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// errExited describes a process that ended without an error.
var errExited = errors.New("exit status 0")

// sizeOf returns a file's size in bytes, or 0 if it does not exist.
func sizeOf(file string) int64 {
	if info, err := os.Stat(file); err == nil {
		return info.Size()
	}
	return 0
}

// complaint returns the newest error that an exited server wrote to its log after the byte from, or "".
func complaint(log string, from int64) (said string) {
	b, err := os.ReadFile(log)
	if err != nil || int64(len(b)) < from {
		return ""
	}
	for line := range strings.Lines(string(b[from:])) {
		if rest, is := strings.CutPrefix(strings.TrimSpace(line), "scrimp: "); is {
			said = rest
		}
	}
	return said
}

// spawn starts a server in its own session. ended gives how its process ends, if that is before this one.
func (a *App) spawn(market string) (ended <-chan error, err error) {
	dir, err := filepath.Abs(a.Data)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", a.Data, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w: give another with --data", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, server.LogName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, server.ServedName)); err == nil {
		a.Notef("scrimp serve is not running: a server starts with its --running, --preempt-after and --retain.\n")
	}
	args := []string{"server", "run", "--data", dir}
	if market != "" {
		args = append(args, "--market", market)
	}
	if a.Ends {
		args = append(args, "--ends")
	}
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }() // ends with either process; reaps a server that exits first
	return end, nil
}

// Gone waits until the process has ended, at most for patience. A zombie counts as ended.
func Gone(ctx context.Context, pid int, patience time.Duration) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if !procs.Runs(pid) {
			return nil
		}
		if err := wait.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the old server (process %d) has not left after %v: its log says what it waits for", pid, patience)
}

// runsThis reports whether a process runs the same file as this one. It saves the command from reading and hashing the
// whole program, which would take most of its time. It returns false if the system does not tell.
func runsThis(pid int) bool {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && os.SameFile(own, theirs)
}

// Server returns the server's description.
func (c *Client) Server(ctx context.Context) (api.Server, error) {
	var v api.Server
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := c.Do(ctx, http.MethodGet, "/v1/server", nil, &v)
	return v, err
}

// Job returns the job's state.
func (c *Client) Job(ctx context.Context, id string) (api.Job, error) {
	var j api.Job
	err := c.Do(ctx, http.MethodGet, OfJob(id, ""), nil, &j)
	return j, err
}

// Do sends in as JSON and decodes the response into out; either may be nil.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	return c.Said(ctx, c.Client.Do(ctx, method, path, in, out))
}

// Submit submits a job exactly once, even if the response is lost.
func (c *Client) Submit(ctx context.Context, s api.Submission) (api.Job, error) {
	j, err := c.Client.Submit(ctx, s)
	return j, c.Said(ctx, err)
}

// Request sends a request without a body and returns the response. The caller closes its body.
func (c *Client) Request(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := c.Open(ctx, method, path, "", nil)
	return r, c.Said(ctx, err)
}

// Said rewrites an error of the server or of the connection for people.
func (c *Client) Said(ctx context.Context, err error) error {
	var problem *api.Problem
	var status *api.StatusError
	var at *url.Error
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &status):
		if status.Status == http.StatusBadRequest && c.Far && strings.HasPrefix(c.Base, "http://") {
			return fmt.Errorf("%s does not answer like a scrimp server: write https://%s if it uses TLS", c.Base,
				strings.TrimPrefix(c.Base, "http://"))
		}
	case c.Far && ctx.Err() == nil && errors.As(err, &at):
		return c.unanswered(at)
	}
	return err
}

// unanswered explains why a remote server did not answer.
func (c *Client) unanswered(at *url.Error) error {
	var untrusted *tls.CertificateVerificationError
	if errors.As(at, &untrusted) {
		return fmt.Errorf("%s shows a certificate that is not trusted: %w: scrimp login %s --ca FILE trusts one of your own",
			c.Base, untrusted.Err, c.Base)
	}
	return fmt.Errorf("no answer from %s: %w: ask whoever runs it, or scrimp login to another", c.Base, at.Err)
}

// OfJob returns an API path below a job.
func OfJob(id, rest string) string { return "/v1/jobs/" + url.PathEscape(id) + rest }

// JobsPage returns one page of jobs and the start of the next page, or "" if there is none.
func (c *Client) JobsPage(ctx context.Context, q url.Values) (list []api.Job, next string, err error) {
	list, next, err = c.Client.JobsPage(ctx, q)
	return list, next, c.Said(ctx, err)
}

// Receipt returns the job's receipt.
func (c *Client) Receipt(ctx context.Context, id string) (receipt.Receipt, error) {
	v, err := c.Client.Receipt(ctx, id)
	return convert.To[receipt.Receipt](v), c.Said(ctx, err)
}

// With wraps f in a command that runs it against the folder's server.
func (a *App) With(f func(ctx context.Context, c *Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Ensure(cmd.Context(), "")
		if err != nil {
			return err
		}
		return f(cmd.Context(), c, args)
	}
}

// Waiting notes on stderr that machines wait for a decision about their owner.
func (a *App) Waiting(ctx context.Context, c *Client) {
	if v, err := c.Server(ctx); err == nil && v.Undecided > 0 {
		a.Notef("%s.\n", show.Waiting(v.Undecided))
	}
}
