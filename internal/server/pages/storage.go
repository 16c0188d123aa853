package pages

import (
	"net/http"

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
