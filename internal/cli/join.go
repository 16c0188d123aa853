package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"scrimp/internal/agent"
	"scrimp/internal/cli/command"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/weburl"
)

// joinFlags holds the flags of agent join.
type joinFlags struct {
	tokenFile, ca, dir, address, user string
	unit, install                     bool
}

func (a *app) agentJoinCmd() *cobra.Command {
	var f joinFlags
	cmd := &cobra.Command{Use: "join URL", Short: "Let a server use this machine", Args: command.Takes("URL"),
		Long: "Connects this machine to a server, and begins there what the server asks for, until Ctrl-C or SIGTERM. " +
			"The connection is begun again whenever it ends; what runs goes on meanwhile, and also when this command ends. " +
			"The token is that which scrimp engine add --join printed: it is read from --token-file, else from the " +
			"environment variable SCRIMP_TOKEN, else it is asked for. It says which machine this is.\n\n" +
			"With --systemd a unit is printed that keeps this command running, with --install it is installed too.\n\n" +
			"Exit status: 0 ended, 1 error.",
		Example: "  scrimp agent join https://scrimp.example.com:7077\n" +
			"  sudo scrimp agent join https://scrimp.example.com:7077 --install --user ann",
		RunE: func(cmd *cobra.Command, args []string) error { return a.join(cmd, args[0], &f) }}
	flags := cmd.Flags()
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token, which you alone can read (default: "+
		"SCRIMP_TOKEN, or it is asked for)")
	flags.StringVar(&f.ca, "ca", "", "`file` of certificates in PEM to trust (default: the system's alone)")
	flags.StringVar(&f.dir, "dir", "", "`folder` for what runs here (default: /var/lib/scrimp for root, "+
		"~/.scrimp for others)")
	flags.StringVar(&f.address, "address", "", "`address` by which other machines reach this one (default: that by "+
		"which it reaches the server)")
	flags.BoolVar(&f.unit, "systemd", false, "print a unit for systemd (default: join)")
	flags.BoolVar(&f.install, "install", false, "install the unit, and keep the token for it (default: join)")
	flags.StringVar(&f.user, "user", "", "`name` of the user whom the unit runs as (default: whoever runs this)")
	_ = cmd.RegisterFlagCompletionFunc("ca", command.Files("pem", "crt"))
	return cmd
}

func (a *app) join(cmd *cobra.Command, address string, f *joinFlags) error {
	u, err := serverURL(address)
	if err != nil {
		return err
	}
	if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && !net.ParseIP(host).IsLoopback() {
		a.Notef("Warning: the token and all that jobs do pass in the clear to %s. Take https where you can.\n", host)
	}
	if _, err := hostd.Roots(f.ca); err != nil {
		return err
	}
	if f.ca, err = absolute(f.ca); err != nil {
		return err
	}
	if f.unit || f.install {
		return a.joinUnit(u.String(), f)
	}
	if f.user != "" {
		return errors.New("--user is the unit's: give it with --systemd or --install, or run this as that user")
	}
	token, machine, err := a.joinToken(f)
	if err != nil {
		return err
	}
	if err := closeMemory(); err != nil { // it holds the token, and programs may run as this user
		return err
	}
	dir, err := joinFolder(f.dir, nil)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP)
	log := slog.New(slog.NewTextHandler(a.Err, nil))
	return hostd.Join(cmd.Context(), hostd.JoinOptions{URL: u.String(), Token: token,
		Options: hostd.Options{Dir: filepath.Join(dir, "hosts", machine), Agent: []string{exe, "agent"},
			Address: f.address, CA: f.ca, Apart: agent.Apart, Log: log},
		Joined: func() { log.Info("joined", "server", u.String(), "machine", machine) }})
}

// serverURL parses the address of a server.
func serverURL(address string) (*url.URL, error) {
	u, ok := weburl.Parse(strings.TrimRight(address, "/"))
	if !ok || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("address %q: write https://HOST[:PORT]", address)
	}
	return u, nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// rootFolder is the agent's folder on a machine where it runs as root.
const rootFolder = "/var/lib/scrimp"

// joinFolder returns the agent's folder: the given one, or the default of a user; nil stands for the current user.
func joinFolder(given string, of *user.User) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	if of == nil {
		var err error
		if of, err = user.Current(); err != nil {
			return "", fmt.Errorf("find this user's folder: %w: give one with --dir", err)
		}
	}
	if of.Uid == "0" {
		return rootFolder, nil
	}
	return filepath.Join(of.HomeDir, ".scrimp"), nil
}

// joinToken returns the token to join with and the machine that it belongs to.
func (a *app) joinToken(f *joinFlags) (token, machine string, err error) {
	switch {
	case f.tokenFile != "":
		at, err := os.Stat(f.tokenFile)
		if err != nil {
			return "", "", fmt.Errorf("read the token: %w", err)
		}
		if at.Mode().Perm()&0o077 != 0 {
			return "", "", fmt.Errorf("others can read the token in %s: chmod 600 %s", f.tokenFile, f.tokenFile)
		}
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return "", "", fmt.Errorf("read the token: %w", err)
		}
		token = string(text)
	case os.Getenv("SCRIMP_TOKEN") != "":
		token = os.Getenv("SCRIMP_TOKEN")
		_ = os.Unsetenv("SCRIMP_TOKEN")
	default:
		a.Notef("Token: ")
		token, err = bufio.NewReader(a.In).ReadString('\n')
		if strings.TrimSpace(token) == "" {
			return "", "", fmt.Errorf("no token was given (%w): scrimp engine add --join prints one, and scrimp engine token "+
				"makes one anew", cmp.Or(err, errors.New("an empty line")))
		}
	}
	token = strings.TrimSpace(token)
	_, machine, ok := setting.TokenOf(token)
	if !ok {
		return "", "", errors.New("this is not a token for joining: scrimp engine add --join prints one, and " +
			"scrimp engine token makes a new one")
	}
	return token, machine, nil
}
