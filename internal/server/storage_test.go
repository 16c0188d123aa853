package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// The server names what live jobs and open groups need, also the stages of a pipeline that have not begun, and only
// to those who see the team; for others it counts them.
func TestStorage_NamesWhatLiveJobsNeed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for _, team := range []string{"a", "b"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
	}
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	submit := func(name, team, rest string) {
		w.must("POST", "/v1/jobs", strings.Replace(costing(name, team, rest), `"command":"true"`, `"command":"train /live/`+name+`"`, 1), nil)
	}
	submit("one", "a", `,"env":{"D":"s3://bucket/corpus"}`)
	submit("two", "b", "")
	submit("three", "a", "")
	w.must("POST", "/v1/jobs/three/end", api.End{}, nil)
	var all, some client.Storage
	w.must("GET", "/v1/storage", nil, &all)
	if want := []string{"/live/one", "/live/two", "s3://bucket/corpus"}; !slices.Equal(all.Needed, want) || all.Hidden != 0 || len(all.Kinds) == 0 {
		t.Errorf("the admin sees %+v, want %q", all, want)
	}
	rec, _ := w.ask("GET", "/v1/storage", ann, "")
	must.Do(t, json.Unmarshal(rec.Body.Bytes(), &some))
	if want := []string{"/live/one", "s3://bucket/corpus"}; !slices.Equal(some.Needed, want) || some.Hidden != 1 || some.Kinds != nil {
		t.Errorf("a user of team a sees %+v, want %q and one hidden job", some, want)
	}
	must.Do(t, os.WriteFile(filepath.Join(w.opts.Dir, "unknown"), make([]byte, 1<<20), 0o600))
	var later client.Storage
	w.must("GET", "/v1/storage", nil, &later)
	if !slices.Equal(later.Kinds, all.Kinds) {
		t.Errorf("a second request within a minute walks the disk: %v after %v", later.Kinds, all.Kinds)
	}
	w.must("POST", "/v1/groups", fmt.Sprintf(`{"folder":%q,"spec":{"name":"p","budget":{"dollars":"9"}},"pipeline":{"at_once":1,"stages":[
		{"name":"first","job":{"command":"make /first"},"deps":["data"],"outs":["out"]},
		{"name":"second","job":{"command":"make /second"},"deps":["out"],"outs":["end"]}]}}`, folderWith(t, map[string]string{"data/a": "1"})), nil)
	w.must("GET", "/v1/storage", nil, &all)
	if !slices.Contains(all.Needed, "/first") || !slices.Contains(all.Needed, "/second") {
		t.Errorf("an open pipeline needs %q", all.Needed)
	}
}
