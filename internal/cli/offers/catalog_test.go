package offers

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/command"
	"scrimp/internal/market/feed"
	"scrimp/internal/test/must"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
}

// testApp returns the program without its flags.
func testApp(dir string) (*app, *bytes.Buffer, *bytes.Buffer) {
	var o, e bytes.Buffer
	return &app{&command.App{In: strings.NewReader(""), Out: &o, Err: &e, Data: dir, Now: time.Now}}, &o, &e
}

func TestFetch_FailedSourceKeepsCopyAndOthersContinue(t *testing.T) {
	good := true
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !good && strings.HasPrefix(r.URL.Path, "/azure") {
			_, _ = w.Write([]byte(`{"items":"no longer so"}`))
			return
		}
		name := map[string]string{"/azure": "azure-2.json", "/sky/lambda/vms.csv": "skypilot-lambda.csv"}[r.URL.Path]
		http.ServeFile(w, r, filepath.Join("..", "..", "market", "feed", "testdata", name))
	}))
	defer web.Close()
	dir := t.TempDir()
	write(t, dir, "prices.csv", "provider,region,machine,capacity,price,currency,discount\nazure,*,*,on-demand,,,10%\n")
	update := func(sources ...string) (string, error) {
		a, out, _ := testApp(dir)
		err := a.fetch(context.Background(), sources, func(string) feed.Updater {
			c := feed.Default("test", 1<<20)
			c.Tries = 1
			return feed.Updater{Client: c, Endpoints: feed.Endpoints{Azure: web.URL + "/azure", SkyPilot: web.URL + "/sky"}, Now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
		})
		return out.String(), err
	}
	if out, err := update("azure", "skypilot/lambda"); err != nil {
		t.Fatal(err, out)
	}
	before, err := os.ReadFile(filepath.Join(dir, "catalog", "azure.csv"))
	must.Do(t, err)
	if strings.Contains(string(before), "discount") {
		t.Error("the user's discount is in the copy")
	}
	good = false
	out, err := update("azure", "skypilot/lambda")
	if err == nil || !strings.Contains(err.Error(), "1 of 2") || !strings.Contains(out, "FAILED") || !strings.Contains(out, "skypilot/lambda") {
		t.Errorf("%v\n%s", err, out)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "catalog", "azure.csv")); !bytes.Equal(before, after) {
		t.Error("the copy has changed")
	}
	write(t, dir, "catalog/azure.csv", "torn")
	list := func() error {
		a, _, _ := testApp(dir)
		cmd := a.offersCmd()
		cmd.SetArgs([]string{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(t.Context())
	}
	if err := list(); err == nil || !strings.Contains(err.Error(), "azure.csv") {
		t.Errorf("torn: %v", err)
	}
	good = true
	if out, err := update("azure"); err != nil {
		t.Error(err, out)
	}
	if err := list(); err != nil {
		t.Errorf("mended: %v", err)
	}
}
