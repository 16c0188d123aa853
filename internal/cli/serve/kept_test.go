package serve_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/cli/serve"
	"scrimp/internal/server"
	"scrimp/internal/test/must"
)

// A server that a command starts decides as the newest scrimp serve of the folder did, and refuses a damaged file.
func TestTakeOver_HasSettingsOfNewestServe(t *testing.T) {
	dir := t.TempDir()
	o := server.Options{Dir: dir}
	if err := serve.TakeOver(&o); err != nil || o.Running != 0 {
		t.Fatalf("without a file: %+v, %v", o, err)
	}
	for _, n := range []int{3, 2} {
		serve.Keep(&server.Options{Dir: dir, Running: n, PreemptAfter: 5 * time.Second, Retain: -1,
			RetainOutputs: time.Hour})
	}
	err := serve.TakeOver(&o)
	if err != nil || o.Running != 2 || o.PreemptAfter != 5*time.Second || o.Retain != -1 || o.RetainOutputs != time.Hour {
		t.Errorf("%+v, %v", o, err)
	}
	for _, text := range []string{"{}", "x", `{"running":-1,"preempt_after_ns":5000000000}`} {
		must.Do(t, os.WriteFile(filepath.Join(dir, server.ServedName), []byte(text), 0o600))
		if err := serve.TakeOver(&o); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
