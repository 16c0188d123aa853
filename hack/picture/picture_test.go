//go:build picture

// Package picture draws the pictures of the documents from the newest make demo: make picture.
package picture

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/test/browser"
	"scrimp/internal/test/must"
)

// The receipt and three pages of the dashboard, as a person sees them at first sight.
func TestPicture(t *testing.T) {
	root, err := filepath.Abs("../..")
	must.Do(t, err)
	link, err := url.Parse(os.Getenv("DASHBOARD"))
	must.Do(t, err)
	b := browser.Start(t)
	shoot := func(name, at string, width, height int, drawn string) {
		b.Size(width, height, false)
		b.Go(at)
		b.Until(drawn)
		must.Do(t, os.WriteFile(filepath.Join(root, "docs", name+".png"), b.Picture(false), 0o644))
	}
	shoot("receipt", "file://"+root+"/build/demo/receipt.html", 980, 880, "document.readyState == 'complete'")
	b.Go(link.String()) // it becomes a cookie, and leads to the first page
	b.Until("location.pathname == '/' && document.querySelector('main') != null")
	page := func(path string) string { return link.Scheme + "://" + link.Host + path }
	const drawn = "document.readyState == 'complete' && document.querySelector('main h1') != null"
	shoot("dashboard-overview", page("/"), 1280, 760, drawn)
	shoot("dashboard-job", page("/jobs/chargpt"), 1280, 1180, drawn)
	shoot("dashboard-costs", page("/costs?by=job"), 1280, 660, drawn)
}
