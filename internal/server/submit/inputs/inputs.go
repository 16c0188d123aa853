// Package inputs finds inputs of jobs that do not exist, before a machine is paid for.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scrimp/internal/content/blob"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
)

// probeTime bounds the questions about the inputs of one submission.
const probeTime = 5 * time.Second

// Probe looks for the inputs of one submission. It asks for each address once.
type Probe struct {
	here  bool // the machines are this host, and the caller is its owner
	own   bool // the caller is the server's owner: other users cannot choose where the server connects to
	until time.Time
	asked map[string]string
}

// New returns the probe of a request. kinds has the kinds of the server's engines.
func New(r *http.Request, kinds map[string]string) *Probe {
	p := &Probe{own: auth.BySocket(r), until: time.Now().Add(probeTime), asked: map[string]string{}}
	p.here = p.own
	for _, kind := range kinds {
		p.here = p.here && kind == "local"
	}
	return p
}

// Refuses returns why a job with an input, or a bucket for its checkpoints, that does not exist is refused. With
// later, another job may make a folder first. The machines use their own credentials, so what the server cannot read
// may exist.
func (p *Probe) Refuses(ctx context.Context, j spec.Job, later bool) *reply.Refusal {
	for i, x := range j.Data {
		if missing := p.ask(ctx, x, later); missing != "" {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: fmt.Sprintf("data[%d].path", i),
				Title: missing, Fix: "correct the address, or put the input there first"}
		}
	}
	store := spec.Data{Path: j.Checkpoint.Store} // a missing folder is made, a missing bucket is not
	if missing := p.ask(ctx, store, true); missing != "" {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "checkpoint.store", Title: missing,
			Fix: "correct the address, or create the bucket first"}
	}
	return nil
}

// ask is missing, once for each address.
func (p *Probe) ask(ctx context.Context, x spec.Data, later bool) string {
	missing, asked := p.asked[x.Path]
	if !asked {
		missing = p.missing(ctx, x, later)
		p.asked[x.Path] = missing
	}
	return missing
}

// missing says that an input certainly does not exist; "": it may.
func (p *Probe) missing(ctx context.Context, x spec.Data, later bool) string {
	u, err := url.Parse(x.Path)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "file":
		if _, err := os.Stat(filepath.FromSlash(u.Path)); p.here && !later && errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("this machine has no %.200s", u.Path)
		}
	case "s3", "gs", "azblob":
		query := u.Query()
		prefix := strings.Trim(u.Path+"/"+query.Get("prefix"), "/") // a store has it as a parameter
		query.Del("prefix")
		account := query.Get("account")
		if !p.own && (len(query) > 1 || len(query) == 1 && account == "") {
			return ""
		}
		if u.Scheme == "s3" && x.Region != "" && !query.Has("region") && !query.Has("endpoint") {
			query.Set("region", x.Region)
		}
		u.Path, u.RawQuery = "", query.Encode()
		within, cancel := context.WithDeadline(ctx, p.until)
		defer cancel()
		b, err := blob.OpenReading(within, u.String(), prefix)
		if err == nil {
			_ = b.Close() // nothing was written
		}
		if errors.Is(err, blob.ErrMissing) {
			return fmt.Sprintf("%s://%.200s does not exist", u.Scheme, u.Host)
		}
	}
	return ""
}
