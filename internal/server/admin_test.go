package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// The token in the file is the admin's until the file has another one; an invalid or too short token opens nothing.
func TestAdminToken_FollowsItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	w := newWorld(t, func(o *Options) { o.AdminToken = file })
	write := func(text string) error {
		must.Do(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		return w.people.ReadAdmin(t.Context(), file)
	}
	asks := func(token string, want int) {
		t.Helper()
		if answer, _ := w.ask("GET", "/v1/users", token, nil); answer.Code != want {
			t.Errorf("%.12s… is answered with %d, want %d", token, answer.Code, want)
		}
	}
	for _, text := range []string{"", "scrimp_short", strings.Repeat("a", 64), "scrimp_" + strings.Repeat("a b", 20)} {
		if err := write(text); err == nil {
			t.Errorf("%q is taken", text)
		}
		asks(text, 401)
	}
	first, second := "scrimp_"+strings.Repeat("1", 64), "scrimp_"+strings.Repeat("2", 64)
	for range 2 {
		must.Do(t, write(first))
		asks(first, 200)
	}
	must.Do(t, write(second))
	asks(first, 401)
	asks(second, 200)
	var tokens []api.Token
	w.must("GET", "/v1/tokens", nil, &tokens)
	if len(tokens) != 2 {
		t.Errorf("%d tokens were made for two", len(tokens))
	}
	if err := write(first); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a token that was replaced is good again: %v", err)
	}
	asks(second, 401)
}
