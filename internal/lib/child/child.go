// Package child starts the programs that the server and its agents call. Each gets an allow-list of the environment of
// this process, because a program of the same user reads /proc/PID/environ: what else the shell had that started the
// server, such as the password of its database, stays with the server.
package child

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// login are the variables by which a tool acts as the user who started the server.
var login = []string{"SSH_AUTH_SOCK", "KRB5CCNAME"}

// Command returns a command like exec.CommandContext with the environment that a tool needs: what belongs to the
// machine and its user, and the way to the user's keys.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = Environ(func(name string) bool { return OfMachine(name) || slices.Contains(login, name) })
	return cmd
}

// Environ returns the variables of this process that are allowed. It is never nil, which exec.Cmd takes for all.
func Environ(allowed func(name string) bool) []string {
	env := []string{}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); allowed(name) {
			env = append(env, v)
		}
	}
	return env
}
