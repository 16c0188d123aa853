package share

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/lib/child"
)

func (a *app) openCmd() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{Use: "open [JOB|GROUP|submit]", Short: "Open the dashboard in a browser",
		GroupID: command.GroupLook, Args: command.Takes("[JOB|GROUP|submit]"),
		Long: "Prints a link to the dashboard, to the page of a job or a group, or with submit to the page that plans " +
			"and submits a job. It opens the link where there is a display. The server that scrimp run starts serves the " +
			"dashboard on 127.0.0.1 until it ends: the link works once and for five minutes, and signs the browser in. On a " +
			"shared server you sign in with a token." + command.PlainExit,
		Example:           "  scrimp open\n  scrimp open train-lm --no-browser\n  scrimp open submit",
		ValidArgsFunction: a.CompleteJob(command.Every),
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			path := "/"
			if len(args) > 0 {
				var err error
				if path, err = pageOf(ctx, c, args[0]); err != nil {
					return err
				}
			}
			link := c.Base + path // a shared server has a known address
			if !c.Far {
				var at api.Dashboard
				if err := c.Do(ctx, http.MethodPost, "/v1/dashboard", nil, &at); err != nil {
					return err
				}
				if at.Address == "" {
					return errors.New("the server has no address: start scrimp serve with --listen 127.0.0.1:7077")
				}
				if link = at.Address + path; at.Key != "" {
					link = at.Address + "/open?" + url.Values{"key": {at.Key}, "to": {path}}.Encode()
				}
			}
			if !quiet {
				browse(c.Dir, link)
			}
			return a.Showf(map[string]string{"url": link}, "%s\n", link)
		})}
	cmd.Flags().BoolVar(&quiet, "no-browser", false,
		"print the link only (default: open a browser where there is a display)")
	return cmd
}

// submitPage opens the page that submits a job, unless a job or a group has that name.
const submitPage = "submit"

// pageOf returns the path of the page of a job, or of a group with the name.
func pageOf(ctx context.Context, c *command.Client, id string) (string, error) {
	var j api.Job
	err := c.Do(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(id), nil, &j)
	if err == nil {
		return "/jobs/" + url.PathEscape(j.ID), nil
	}
	if g, no := c.Group(ctx, id); no == nil {
		return "/groups/" + url.PathEscape(g.ID), nil
	}
	if id == submitPage {
		return "/submit", nil
	}
	return "", err
}

// browse opens a link if there is a display. It passes the link in a file, because other users can see the arguments of
// programs and the first use of the link wins. It does not wait for the browser.
func browse(dir, link string) {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	file := filepath.Join(dir, "open.html")
	_ = os.Remove(file) // the new file must not keep an old one's permissions
	text := `<!doctype html><meta http-equiv="refresh" content="0;url=` + html.EscapeString(link) + `">`
	path, err := exec.LookPath(name)
	if err != nil || os.WriteFile(file, []byte(text), 0o600) != nil {
		return
	}
	cmd := child.Command(context.Background(), path, file)
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
		"DBUS_SESSION_BUS_ADDRESS"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
