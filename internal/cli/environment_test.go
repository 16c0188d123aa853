package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
)

func TestEnvironment_NamesTheServerAndItsToken(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	address := h.serve()
	h.do("users", "set", "ann")
	var made api.MadeToken
	must.Do(t, json.Unmarshal([]byte(h.out("tokens", "new", "ann", "--json")), &made))
	dir := t.TempDir()
	for _, c := range []struct {
		args, says string
		env        []string
	}{
		{"jobs", "and ann has none", []string{"SCRIMP_SERVER=" + address, "SCRIMP_TOKEN=" + made.Text}},
		{"logout", "not logged in", []string{"SCRIMP_SERVER=" + address, "SCRIMP_TOKEN=" + made.Text}},
		{"server status", "SCRIMP_TOKEN is set and SCRIMP_SERVER is not", []string{"SCRIMP_SERVER=", "SCRIMP_TOKEN=x"}},
		{"server status", "SCRIMP_SERVER: address", []string{"SCRIMP_SERVER=localhost", "SCRIMP_TOKEN=x"}},
		{"server status", "no server", []string{"SCRIMP_SERVER=", "SCRIMP_TOKEN=x", "SCRIMP_JOB=job"}},
		{"--server local server status", "no server", []string{"SCRIMP_SERVER=" + address, "SCRIMP_TOKEN=x"}},
		{"server status", "no server", []string{"SCRIMP_SERVER=" + address, "SCRIMP_TOKEN="}},
		{"serve --listen 127.0.0.1:0", `SCRIMP_CACHE is "all of it"`, []string{"SCRIMP_CACHE=all of it"}},
		{"jobs", `did not start: SCRIMP_CACHE is "2"`, []string{"SCRIMP_CACHE=2", "SCRIMP_SERVER=", "SCRIMP_TOKEN="}},
	} {
		cmd := h.command(strings.Fields(c.args)...)
		cmd.Env = append(append(cmd.Env, "SCRIMP_DATA="+dir), c.env...)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(strings.ToLower(string(out)), strings.ToLower(c.says)) {
			t.Errorf("scrimp %s with %q says %q, want %q", c.args, c.env, out, c.says)
		}
	}
}
