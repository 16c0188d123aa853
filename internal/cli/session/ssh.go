package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
)

// serveSSH is the script that ssh runs on the machine through scrimp exec: an SSH server for one connection on its
// standard input, which accepts one user key. Its keys lie in a folder that only this user of the machine can write.
// The script has neither single quotes nor percent signs, which ssh_config would change.
const serveSSH = `umask 077; d=/tmp/scrimp-ssh-$(id -u); mkdir -p "$d"; [ -O "$d" ] && [ ! -L "$d" ] || exit 1; ` +
	`k="$d/keys-$(echo "$1" | cksum | cut -d" " -f1)"; echo "$1" > "$k"; ` +
	`[ -f "$d/host" ] || { ssh-keygen -q -t ed25519 -N "" -f "$d/host.$$" >&2 && ` +
	`mv "$d/host.$$" "$d/host"; } || exit 1; ` +
	`rm -f "$d"/host.*.pub; ` +
	`[ "$(id -u)" != 0 ] || mkdir -p /run/sshd; PATH=$PATH:/usr/sbin:/sbin; ` +
	`exec "$(command -v sshd)" -i -q -f /dev/null -o HostKey="$d/host" -o AuthorizedKeysFile="$k" -o StrictModes=no ` +
	`-o UsePAM=no -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password ` +
	`-o Subsystem="sftp internal-sftp"`

// askSSH prints the user of the machine, and the programs that serveSSH needs.
const askSSH = `id -un; PATH=$PATH:/usr/sbin:/sbin; command -v sshd >/dev/null && ` +
	`command -v ssh-keygen >/dev/null && echo yes`

func (a *app) sshConfigCmd() *cobra.Command {
	var key string
	cmd := &cobra.Command{Use: "ssh-config JOB", Short: "Print the lines of ~/.ssh/config that reach a job's machine",
		Args: command.Takes("JOB"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Prints an entry for ~/.ssh/config, with which ssh, scp, rsync and the remote window of an editor reach the " +
			"machine that the session or job has now: ssh scrimp-JOB. Each connection goes through scrimp exec, with " +
			"the same rights and on record; the machine opens no port and accepts your key only.\n\nThe machine needs sshd " +
			"and ssh-keygen (the package openssh-server), for example from --setup or the image; without them this " +
			"command says so. A shell over ssh begins in the home folder, without the variables and secrets of the job." +
			command.PlainExit,
		Example: "  scrimp ssh-config lab >> ~/.ssh/config\n  ssh scrimp-lab",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.sshConfig(ctx, c, args[0], key)
		})}
	cmd.Flags().StringVar(&key, "key", "", "your public key `file` (default: id_ed25519.pub, id_ecdsa.pub or id_rsa.pub "+
		"in ~/.ssh)")
	_ = cmd.MarkFlagFilename("key", "pub")
	return cmd
}

func (a *app) sshConfig(ctx context.Context, c *command.Client, job, key string) error {
	file, public, err := publicKey(key)
	if err != nil {
		return err
	}
	j, err := c.Job(ctx, job)
	if err != nil {
		return err
	}
	var asked api.ExecResult
	e := api.Exec{Command: []string{"sh", "-c", askSSH}}
	if err := c.Do(ctx, http.MethodPost, command.OfJob(j.ID, "/exec"), e, &asked); err != nil {
		return err
	}
	said := strings.Fields(string(asked.Output))
	switch {
	case asked.Error != "":
		return fmt.Errorf("look for sshd on the machine of %s: %s", j.ID, asked.Error)
	case len(said) != 2 || said[1] != "yes" || !userName.MatchString(said[0]):
		return fmt.Errorf("the machine of %s has no sshd or no ssh-keygen: add them with --setup 'apt-get install -y "+
			"openssh-server' or by the image; scrimp shell and scrimp forward work without them", j.ID)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	dir, err := filepath.Abs(a.Data)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", a.Data, err)
	}
	words := []string{self, "--data", dir}
	if a.Server != "" {
		words = append(words, "--server", a.Server)
	}
	words = append(words, "exec", "-i", j.ID, "--", "sh", "-c", serveSSH, "scrimp-ssh", public)
	text, err := configOf(j.ID, said[0], file, words)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Print(map[string]string{"host": "scrimp-" + j.ID, "user": said[0], "config": text})
	}
	a.Content(text)
	return nil
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?$`)

// configOf returns the entry of ~/.ssh/config. The channel itself is authenticated, and each machine has another host
// key, so ssh need not remember it.
func configOf(job, user, key string, words []string) (string, error) {
	var quoted []string
	for _, w := range words {
		if strings.ContainsAny(w, "\n\r") {
			return "", fmt.Errorf("%q has a line break, which ~/.ssh/config cannot hold", w)
		}
		w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		quoted = append(quoted, strings.ReplaceAll(w, "%", "%%"))
	}
	return fmt.Sprintf("Host scrimp-%s\n  User %s\n  IdentityFile \"%s\"\n  IdentitiesOnly yes\n"+
		"  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  ProxyCommand %s\n", job, user,
		strings.ReplaceAll(key, "%", "%%"), strings.Join(quoted, " ")), nil
}

// maxKey bounds a public key, in bytes.
const maxKey = 16 << 10

// publicKey returns the file of the private key that belongs to a public key, and the public key.
func publicKey(file string) (private, public string, err error) {
	names := []string{file}
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", "", fmt.Errorf("find ~/.ssh: %w: give --key FILE", err)
		}
		names = nil
		for _, name := range []string{"id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"} {
			names = append(names, filepath.Join(home, ".ssh", name))
		}
	}
	for _, name := range names {
		in, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) && file == "" {
			continue
		}
		if err != nil {
			return "", "", fmt.Errorf("read --key: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(in, maxKey+1))
		if err = errors.Join(err, in.Close()); err != nil {
			return "", "", fmt.Errorf("read --key: %w", err)
		}
		public = strings.TrimSpace(string(text))
		if len(text) > maxKey || !isPublic.MatchString(public) {
			return "", "", fmt.Errorf("--key %s is not a public key: give the file that ends in .pub", name)
		}
		abs, err := filepath.Abs(strings.TrimSuffix(name, ".pub"))
		return abs, public, err
	}
	return "", "", errors.New("you have no key in ~/.ssh: make one with ssh-keygen -t ed25519, or give --key FILE")
}

// isPublic matches one public key with its comment, on one line.
var isPublic = regexp.MustCompile(`^(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n\r]*)?$`)
