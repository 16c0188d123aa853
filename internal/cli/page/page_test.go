package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/page"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/must"
)

// A page replaces only an earlier receipt, and creates no folder.
func TestMayWrite_ReplacesOnlyPagesOfItsKind(t *testing.T) {
	dir := t.TempDir()
	body, err := receipt.Receipt{Job: "lm-1"}.HTML()
	must.Do(t, err)
	for name, body := range map[string]string{"mine.html": "<!doctype html>\n<title>Mine</title>", "empty.html": "", "receipt.html": string(body)} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
	}
	must.Do(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "link.html")))
	for name, says := range map[string]string{"receipt.html": "", "new.html": "", "mine.html": "--force replaces it", "empty.html": "--force replaces it",
		"link.html": "links to a file that does not exist", "zz/a.html": "there is no folder " + dir + "/zz", "mine.html/a.html": "is not a folder", "": "it is a folder"} {
		err := page.MayWrite(filepath.Join(dir, name), receipt.PageBegin, "receipt", false)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	if err := page.MayWrite("-", receipt.PageBegin, "receipt", true); err == nil || !strings.Contains(err.Error(), "/dev/stdout") {
		t.Errorf("a file named - may be written: %v", err)
	}
	if err := page.MayWrite(filepath.Join(dir, "mine.html"), receipt.PageBegin, "receipt", true); err != nil {
		t.Error(err)
	}
}
