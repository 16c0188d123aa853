package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/agent"
	"scrimp/internal/cli/command"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/wait"
)

// placeFlags holds the flags of agent place.
type placeFlags struct{ token, server, ca string }

// agentPlaceCmd runs in the init container of a pod, because the program's own container has no scrimp.
func (a *app) agentPlaceCmd() *cobra.Command {
	var f placeFlags
	cmd := &cobra.Command{Use: "place FOLDER", Short: "Put the agent into a folder that another container has too",
		Args: command.Takes("FOLDER"), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error { return place(cmd.Context(), args[0], &f) }}
	cmd.Flags().StringVar(&f.token, "token", "", "`file` with the machine's token")
	cmd.Flags().StringVar(&f.server, "server", "", "`URL` of the server, which must answer")
	cmd.Flags().StringVar(&f.ca, "ca", "", "`file` of certificates in PEM to trust")
	return cmd
}

// place copies this program, the machine's token and the trusted certificates to where the agent looks for them.
func place(ctx context.Context, folder string, f *placeFlags) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range []string{"bin", "machine"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil { // programs run from there
			return fmt.Errorf("make the machine's folder: %w", err)
		}
	}
	if err := copied(exe, filepath.Join(folder, "bin", "scrimp"), 0o755); err != nil {
		return fmt.Errorf("copy the agent's program: %w", err)
	}
	if f.ca != "" {
		if err := copied(f.ca, filepath.Join(folder, "ca.crt"), 0o644); err != nil {
			return fmt.Errorf("copy the server's certificates: %w", err)
		}
	}
	token, err := os.ReadFile(f.token)
	if err != nil {
		return fmt.Errorf("read the machine's token: %w", err)
	}
	if err := agent.KeepToken(filepath.Join(folder, "machine"), strings.TrimSpace(string(token))); err != nil {
		return err
	}
	return reached(ctx, f)
}

// reached waits until the server's address answers: a machine that cannot reach the server wastes money.
func reached(ctx context.Context, f *placeFlags) error {
	for try := 1; ; try++ {
		err := hostd.Reach(ctx, f.server, f.ca)
		if err == nil {
			return nil
		}
		if try == 6 {
			return fmt.Errorf("it cannot reach the server at %s (%w): write an address for agents that pods reach, and let "+
				"network policies pass it", f.server, err)
		}
		if wait.For(ctx, 5*time.Second) != nil {
			return context.Cause(ctx)
		}
	}
}

// copied copies a file.
func copied(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}
