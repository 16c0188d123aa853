package cli_test

import (
	"strings"
	"testing"
)

// A program finds no token of the machine in its agent's environment or arguments, nor a bootstrap token in the
// machine's folder: the token is used up before the program runs.
func TestHideToken_ProgramFindsNoToken(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.do("run", "-y", "--", "sh", "-c", `echo names: $(tr '\0' '\n' < /proc/$PPID/environ | grep -c '^SCRIMP_INSTANCE_ID='); `+
		`echo tokens: $(cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\0' '\n' | grep -c 'SCRIMP_TOKEN\|bootstrap\.'); `+
		`echo kept: $(ls ../../../agent | grep -c token); echo mine: $(env | grep -c 'SCRIMP_TOKEN\|bootstrap\.')`)
	log := h.do("logs", "sh")
	for _, want := range []string{"names: 1", "tokens: 0", "kept: 0", "mine: 0"} {
		if !strings.Contains(log, want) {
			t.Errorf("the program says\n%s\nwant %s", log, want)
		}
	}
}
