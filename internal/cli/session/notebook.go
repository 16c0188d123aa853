package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/terminal"
	"scrimp/internal/lib/wait"
)

// usualPort is the local port of a notebook.
const usualPort = 8888

func (a *app) notebookCmd() *cobra.Command {
	var f flags
	var local int
	cmd := &cobra.Command{Use: "notebook [JOB]", Short: "Begin or enter a session with Jupyter, and link to it",
		Args: command.Takes("[JOB]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJob(liveSession),
		Long: "Begins a session with Jupyter in a copy of this folder on the cheapest machine that fits, forwards its port " +
			"to this machine, and prints the link with its token; or does that for the session that is named. Jupyter " +
			"must be installed there, by --setup 'pip install jupyterlab' or in the --image. Ctrl-C leaves it " +
			"running, and so does a closed terminal; an open tab of the browser counts as use while this command " +
			"runs. scrimp stop saves its files and ends it." + about +
			"\n\nExit status: 0 ended or left running, 1 error, 3 the session failed.",
		Example: "  scrimp notebook --setup 'pip install jupyterlab'\n  scrimp notebook --resume notebook-2",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := listen(local, !cmd.Flags().Changed("port"))
			if err != nil {
				return err
			}
			c, j, err := a.begin(cmd.Context(), &f, notebook, args)
			if err != nil || f.detach {
				_ = l.Close() // nothing uses it
			}
			switch {
			case err != nil:
				return err
			case f.detach:
				return a.begun(j)
			}
			return a.forwards(cmd.Context(), c, j.ID, notebook, l, a.link)
		}}
	a.addFlags(&f, cmd)
	cmd.Flags().IntVar(&local, "port", usualPort, "the local `port` of the link; another where this one is "+
		"taken and not given")
	_ = cmd.RegisterFlagCompletionFunc("port", cobra.NoFileCompletions)
	return cmd
}

// mayWork refuses a notebook that cannot work, before anything is rented: on the local engine alone, the machines have
// the programs of this one.
func (a *app) mayWork(ctx context.Context, c *command.Client, f *flags, kind string) error {
	if kind != notebook || f.setup != "" || f.image != "" || c.Far {
		return nil
	}
	v, err := c.Server(ctx)
	if err != nil {
		return err
	}
	for _, e := range v.Engines {
		if e.Kind != "local" && e.Name != "local" && (f.on == "" || strings.HasPrefix(f.on, e.Name)) {
			return nil
		}
	}
	for _, name := range []string{"jupyter-lab", "jupyter-notebook", "jupyter-server"} {
		if _, err := exec.LookPath(name); err == nil {
			return nil
		}
	}
	return errors.New("no jupyter-lab is installed here, where the local market's machines run: pip install jupyterlab, " +
		"or begin with --setup 'pip install jupyterlab'")
}

// listen opens a local port; with any, another one if that is taken.
func listen(port int, other bool) (net.Listener, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%d is not a port: give one from 1 to 65535", port)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil && other {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("open the local port %d: %w: give another one", port, err)
	}
	return l, nil
}

// target finds the port to forward on the machine that a job has now, and what to say once it is forwarded.
type target func(ctx context.Context, c *command.Client, job, local string) (port int, say func(), err error)

// forwards forwards a local port to the machines of a job until the job ends or the user leaves.
func (a *app) forwards(ctx context.Context, c *command.Client, id, kind string, l net.Listener, to target) error {
	ports := terminal.Ports{Listener: l}
	var accepting sync.WaitGroup
	accepting.Go(ports.Accept)
	defer accepting.Wait()
	defer func() { _ = l.Close() }()
	v := &visit{app: a, c: c, id: id, kind: kind}
	for {
		j, err := v.running(ctx)
		if err != nil {
			return v.leave(ctx, err)
		}
		if j.Closed {
			return v.over(ctx, j)
		}
		var end api.ExecOutput
		port, say, err := to(ctx, v.c, id, l.Addr().String())
		if err == nil {
			end, err = ports.Run(ctx, v.c, id, port, say)
		}
		if ctx.Err() != nil {
			return v.leave(ctx, context.Cause(ctx))
		}
		if err := v.lost(ctx, j, end, err); err != nil {
			return err
		}
	}
}

// link finds the port and the token of a notebook.
func (a *app) link(ctx context.Context, c *command.Client, job, local string) (port int, say func(), err error) {
	e := api.Exec{Command: []string{"/bin/sh", "-c", `echo "$SCRIMP_NOTEBOOK_PORT $JUPYTER_TOKEN"`}}
	var r api.ExecResult
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/exec"), e, &r); err != nil {
		return 0, nil, err
	}
	at, token, _ := strings.Cut(strings.TrimSpace(string(r.Output)), " ")
	if port, err = strconv.Atoi(at); err != nil || token == "" {
		return 0, nil, errNotYet
	}
	url := "http://" + local + "/?token=" + token // each kind of Jupyter leads on to its own first page
	return port, func() {
		go func() {
			if !answers(ctx, local) {
				return
			}
			if a.JSON {
				_ = a.Print(map[string]any{"job": job, "url": url})
				return
			}
			a.Printf("%s: %s\nCtrl-C leaves it running.\n", job, url)
		}()
	}, nil
}

// answers waits until a web server answers at a local address.
func answers(ctx context.Context, address string) bool {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api", nil)
		if err != nil {
			return false
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			return true
		}
		if wait.For(ctx, lookEvery) != nil {
			return false
		}
	}
}

func (a *app) forwardCmd() *cobra.Command {
	return &cobra.Command{Use: "forward JOB PORT[:LOCAL]", Short: "Forward a local port to one on a job's machine",
		Args: command.Takes("JOB", "PORT[:LOCAL]"), GroupID: command.GroupLook,
		ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Forwards connections to port LOCAL of this machine, or else PORT, to PORT of 127.0.0.1 on the machine that " +
			"the job has, through the server: the machine opens no port. It needs the same right as scrimp exec, goes on " +
			"where the job moves to another machine, and ends with the job. Ctrl-C ends it. An open connection keeps a " +
			"session from being idle." + command.PlainExit,
		Example: "  scrimp forward train-lm 6006\n  scrimp forward shell 8000:8080",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			remote, local, err := portsOf(args[1])
			if err != nil {
				return err
			}
			if _, err := c.Job(ctx, args[0]); err != nil {
				return err
			}
			l, err := listen(local, false)
			if err != nil {
				return err
			}
			return a.forwards(ctx, c, args[0], "", l, func(_ context.Context, _ *command.Client, job, at string) (int, func(),
				error) {
				return remote, func() {
					if a.JSON {
						_ = a.Print(map[string]any{"job": job, "port": remote, "local": at})
						return
					}
					a.Notef("%s goes to port %d on the machine of %s.\n", at, remote, job)
				}, nil
			})
		})}
}

// portsOf parses PORT or PORT:LOCAL.
func portsOf(text string) (remote, local int, err error) {
	a, b, two := strings.Cut(text, ":")
	if !two {
		b = a
	}
	remote, err = strconv.Atoi(a)
	local, wrong := strconv.Atoi(b)
	if err != nil || wrong != nil || remote < 1 || remote > 65535 || local < 1 || local > 65535 {
		return 0, 0, fmt.Errorf("%q is not PORT or PORT:LOCAL: write ports from 1 to 65535, as 6006 or 6006:8080", text)
	}
	return remote, local, nil
}
