package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/client"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load.
type asset struct {
	name       string // includes a hash of the content, so that browsers can cache it for ever
	kind       string
	text, gzip []byte
}

// assets holds the files by name without the hash.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	for _, of := range []struct{ name, kind string }{
		{"dashboard.css", "text/css; charset=utf-8"}, {"dashboard.js", "text/javascript; charset=utf-8"},
		{"icon.svg", "image/svg+xml"},
	} {
		text, err := assetFiles.ReadFile("assets/" + of.name)
		if err != nil {
			panic(err) // the file is embedded
		}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
		_, _ = z.Write(text)                                  // a buffer never fails
		_ = z.Close()
		sum, ext := sha256.Sum256(text), path.Ext(of.name)
		name := strings.TrimSuffix(of.name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		all[of.name] = asset{name, of.kind, text, b.Bytes()}
	}
	return all
})

// asset serves a file that pages load.
func (s *Site) asset(w http.ResponseWriter, r *http.Request) {
	guard(w)
	for _, a := range assets() {
		if a.name != r.PathValue("name") {
			continue
		}
		h, text := w.Header(), a.text
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Type", a.kind)
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			text = a.gzip
		}
		_, _ = w.Write(text)
		return
	}
	http.NotFound(w, r)
}

// frame is the data of a whole page.
type frame struct {
	*visit
	Title   string
	Nav     []navItem // the sections, and the pages that are in none
	Command string    // the equivalent command
	Twin    string    // address of the same data as JSON
	Request string    // requests of the API that do the same, where there is no Twin
	Live    string    // address of the page's live updates; "": none
	Query   string    // present search
	Page    any
}

// navItem is a page, or a section with its pages.
type navItem struct {
	Path, Name string
	Key        string // letters for its key, best first
	Here       bool
	Pages      []navItem
}

// Me returns the reader; nil if not signed in.
func (f frame) Me() *client.Me {
	if f.visit == nil || f.me.User == "" {
		return nil
	}
	return &f.me
}

// Now returns the time at which the page was made.
func (f frame) Now() time.Time { return f.now }

// Market returns the market and its clock; nil if not signed in.
func (f frame) Market() *client.MarketClock {
	if f.visit == nil || f.server.Market.Name == "" {
		return nil
	}
	return &f.server.Market
}

// Own reports whether the server has the reader as its only user.
func (f frame) Own() bool { return f.visit != nil && f.site.Owner != nil }

// frame renders a whole page. If that fails, which is a bug, it renders an error page.
func (s *Site) frame(v *visit, p page, data any) []byte {
	body, err := s.write(v, p, data)
	if err != nil {
		body, _ = s.write(nil, page{file: "problem", title: "Not possible", still: true}, asProblem(err))
	}
	return body
}

// write is frame with an error.
func (s *Site) write(v *visit, p page, data any) ([]byte, error) {
	f := frame{visit: v, Title: p.title, Page: data, Command: p.command, Twin: p.twin, Request: p.request}
	if v != nil && v.me.User != "" {
		f.Nav = navigation(v, p)
		if id := v.r.PathValue("id"); id != "" {
			f.Command = strings.ReplaceAll(p.command, "{id}", id)
			f.Twin = strings.ReplaceAll(p.twin, "{id}", url.PathEscape(id))
			f.Title = id
		}
		f.Query = v.r.URL.Query().Get("name")
		if t, ok := data.(interface{ twin() string }); ok {
			f.Twin = t.twin()
		}
		if t, ok := data.(interface{ command() string }); ok {
			f.Command = t.command()
		}
		if !p.still {
			f.Live = v.r.URL.RequestURI()
		}
	}
	if f.Twin != "" {
		f.Twin = "/data" + strings.TrimPrefix(f.Twin, "/v1")
	}
	var b bytes.Buffer
	if err := layouts()[p.file].ExecuteTemplate(&b, "layout.html", f); err != nil {
		return nil, err
	}
	return bytes.Map(sanitize, b.Bytes()), nil
}

// navigation lists the pages that the reader may open, by section. A section leads to its first page.
func navigation(v *visit, p page) (items []navItem) {
	at, sections := v.r.URL.Path, map[string]int{}
	for _, one := range list() {
		if one.nav == "" || one.least != "" && !atLeast(v.me.Best, one.least) {
			continue
		}
		to := strings.TrimSuffix(one.path, "{$}")
		item := navItem{Path: to, Name: one.nav, Key: cmp.Or(one.key, one.nav), Here: one.path == p.path}
		if p.nav == "" && to != "/" && strings.HasPrefix(at, to+"/") {
			item.Here = true
		}
		i, known := sections[one.section]
		switch {
		case one.section == "":
			items = append(items, item)
		case known:
			items[i].Pages = append(items[i].Pages, item)
		default:
			sections[one.section] = len(items)
			items = append(items, navItem{Path: to, Name: one.section, Here: one.section == p.section, Pages: []navItem{item}})
		}
	}
	return items
}

// roles lists the roles; each includes the ones before it.
var roles = []client.Role{client.Nobody, client.Viewer, client.Submitter, client.Operator, client.Admin}

func atLeast(role, least client.Role) bool {
	return slices.Index(roles, role) >= slices.Index(roles, least)
}

// layouts holds the templates of each page, by file name.
var layouts = sync.OnceValue(func() map[string]*template.Template {
	files, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // the files are embedded
	}
	all := map[string]*template.Template{}
	shared := []string{"templates/layout.html", "templates/shared.html"}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "layout" || name == "shared" {
			continue
		}
		all[name] = template.Must(template.New(f.Name()).Funcs(functions).
			ParseFS(templates, append(slices.Clone(shared), "templates/"+f.Name())...))
	}
	return all
})
