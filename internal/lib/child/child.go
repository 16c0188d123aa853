// Package child starts the programs that the server and its agents call. Each gets only allowed variables of this
// process's environment, because a program of the same user can read /proc/PID/environ: other variables, such as the
// password of the server's database, stay with the server.
package child

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// login lists the variables that let a tool act as the user who started the server.
var login = []string{"SSH_AUTH_SOCK", "KRB5CCNAME"}

// Command returns a command like exec.CommandContext with the environment that a tool needs: variables of the machine
// and its user, and access to the user's keys.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = Environ(func(name string) bool { return OfMachine(name) || slices.Contains(login, name) })
	return cmd
}

// Environ returns the allowed variables of this process. It is never nil, because exec.Cmd treats nil as all variables.
func Environ(allowed func(name string) bool) []string {
	env := []string{}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); allowed(name) {
			env = append(env, v)
		}
	}
	return env
}
