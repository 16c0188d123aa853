package secret

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"scrimp/internal/test/must"
)

// Nobody can read sealed values without the key. They open for their own job only, and only unchanged, and are gone
// after Forget.
func TestVault_OpensForItsJobOnly(t *testing.T) {
	t.Parallel()
	v := Vault{Dir: t.TempDir()}
	values := Values{Secrets: map[string]string{"TOKEN": "hunter2", "EMPTY": ""}, Shell: map[string]string{"HF_HOME": "/data/hub"}}
	must.Do(t, v.Keep("one", values))
	if got, err := v.Open("one"); err != nil || !reflect.DeepEqual(got, values) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := v.Open("none"); err != nil || got.Secrets != nil || got.Shell != nil {
		t.Errorf("of a job without secrets: %v, %v", got, err)
	}
	text, err := os.ReadFile(v.File("one"))
	if err != nil || bytes.Contains(text, []byte("hunter2")) || bytes.Contains(text, []byte("TOKEN")) || bytes.Contains(text, []byte("hub")) {
		t.Errorf("the file holds what it should seal, %v", err)
	}
	for _, path := range []string{v.File("one"), filepath.Join(v.Dir, vaultKey)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for _, bad := range [][]byte{nil, text[:8], append(bytes.Clone(text), 0), bytes.Repeat([]byte{0}, len(text))} {
		must.Do(t, os.WriteFile(v.File("two"), bad, 0o600))
		if got, err := v.Open("two"); err == nil {
			t.Errorf("%x opens as %v", bad, got)
		}
	}
	must.Do(t, os.WriteFile(v.File("two"), text, 0o600))
	if got, err := v.Open("two"); err == nil {
		t.Errorf("in another job's place they open: %v", got)
	}
	if jobs, err := v.Jobs(); err != nil || !maps.Equal(jobs, map[string]bool{"one": true, "two": true}) {
		t.Errorf("secrets are kept of %v, %v", jobs, err)
	}
	for range 2 {
		if err := v.Forget("one"); err != nil {
			t.Error(err)
		}
	}
	if got, err := v.Open("one"); err != nil || got.Secrets != nil || got.Shell != nil {
		t.Errorf("what is forgotten: %v, %v", got, err)
	}
}
