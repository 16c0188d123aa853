package child

import (
	"slices"
	"testing"
)

func TestCommand_HidesTheServersPassword(t *testing.T) {
	for _, name := range []string{"PGPASSWORD", "DATABASE_URL", "SCRIMP_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LC_TIME"} {
		t.Setenv(name, "of-the-shell")
	}
	env := Command(t.Context(), "true").Env
	for name, want := range map[string]bool{"PGPASSWORD": false, "DATABASE_URL": false, "SCRIMP_TOKEN": false,
		"AWS_SECRET_ACCESS_KEY": false, "SSH_AUTH_SOCK": true, "LC_TIME": true} {
		if got := slices.Contains(env, name+"=of-the-shell"); got != want {
			t.Errorf("%s reaches the tool: %t", name, got)
		}
	}
	if Environ(func(string) bool { return false }) == nil {
		t.Error("nil: exec passes everything on")
	}
}
