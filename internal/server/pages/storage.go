package pages

import (
	"net/http"
	"time"

	"scrimp/client"
)

// storagePage shows what the server keeps.
type storagePage struct {
	client.Storage
	Bytes int64 // of all kinds
	Freed int64 // bytes that scrimp gc would free now
	Known bool  // whether Freed is known: the reader may run scrimp gc
}

func storageOf(v *visit) (any, error) {
	p := &storagePage{}
	if err := v.get("/v1/storage", &p.Storage); err != nil {
		return nil, err
	}
	for _, k := range p.Kinds {
		p.Bytes += k.Bytes
	}
	if atLeast(v.role(client.Everywhere), client.Admin) {
		var done client.GCDone
		if _, err := v.ask(http.MethodPost, "/v1/gc", client.GC{DryRun: true}, &done); err == nil {
			p.Freed, p.Known = done.Bytes, true
		}
	}
	return p, nil
}

// cachePage lists the kept outputs of stages, those with the most value per byte first.
type cachePage struct {
	client.Cache
	Now  time.Time
	More int // entries not listed
}

// mostKept bounds the entries of the page.
const mostKept = 200

func cacheOf(v *visit) (any, error) {
	p := &cachePage{Now: v.now}
	if err := v.get("/v1/cache", &p.Cache); err != nil {
		return nil, err
	}
	if n := len(p.Entries); n > mostKept {
		p.Entries, p.More = p.Entries[:mostKept], n-mostKept
	}
	return p, nil
}
