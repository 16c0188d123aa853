//go:build !local

package awstest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A Gate is a proxy for an S3 server without sessions: it passes requests that a session's policy allows, and signs
// them with the server's own key. As at Amazon, a missing key is "denied" for a session that may not list its
// bucket.
type Gate struct {
	STS         *Server
	To          string // URL of the server
	Key, Secret string // of the server's own user
	Region      string

	mu   sync.Mutex
	seen []Access
}

// Access is a request to a gate.
type Access struct {
	Key              string // of the session
	Action, Resource string
	Prefix           *string // of a list; nil: not a list, or of everything
	Allowed          bool
}

// Seen returns all requests so far.
func (g *Gate) Seen() []Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Access(nil), g.seen...)
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, token := signedWith(r), r.Header.Get("X-Amz-Security-Token")
	session, known := g.STS.Session(key, token)
	switch {
	case !known:
		deny(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	case !g.STS.o.Wall().Before(session.Until):
		deny(w, http.StatusBadRequest, "ExpiredToken")
		return
	}
	actions, resource := actionsOf(r)
	keys := map[string]string{}
	var prefix *string
	if q := r.URL.Query(); q.Has("prefix") {
		keys["s3:prefix"] = q.Get("prefix")
		prefix = aws.String(q.Get("prefix"))
	}
	for _, a := range actions {
		ok := session.Allows(a, resource, keys)
		g.mu.Lock()
		g.seen = append(g.seen, Access{key, a, resource, prefix, ok})
		g.mu.Unlock()
		if !ok {
			deny(w, http.StatusForbidden, "AccessDenied")
			return
		}
	}
	resp, err := g.forward(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	bucket, _, _ := strings.Cut(resource, "/")
	if resp.StatusCode == http.StatusNotFound && !session.Allows("s3:ListBucket", bucket, keys) {
		deny(w, http.StatusForbidden, "AccessDenied")
		return
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// signedWith returns the access key in a version 4 signature.
func signedWith(r *http.Request) string {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	return key
}

func deny(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>denied by the gate</Message></Error>", code)
}

// actionsOf returns the actions of a request and their resource. Source: docs.aws.amazon.com, Amazon S3 user guide,
// "Required permissions for Amazon S3 API operations", 2026-11.
func actionsOf(r *http.Request) (actions []string, resource string) {
	resource = "arn:aws:s3:::" + strings.Trim(r.URL.Path, "/")
	_, object, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	action := ""
	if object != "" {
		action = objectAction(r)
	} else if r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2" {
		action = "s3:ListBucket"
	}
	if action == "" {
		action = "unknown:" + r.Method + " " + r.URL.String()
	}
	return []string{action}, resource
}

// objectAction returns the action that a request takes on an object, or "" where the emulator does not know it.
func objectAction(r *http.Request) string {
	q := r.URL.Query()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if len(q) <= 1 {
			return "s3:GetObject"
		}
		if r.Method == http.MethodGet && q.Has("uploadId") {
			return "s3:ListMultipartUploadParts"
		}
	case http.MethodPut, http.MethodPost:
		if !q.Has("acl") && !q.Has("tagging") && r.Header.Get("X-Amz-Copy-Source") == "" {
			return "s3:PutObject"
		}
	case http.MethodDelete:
		if q.Has("uploadId") {
			return "s3:AbortMultipartUpload"
		}
		return "s3:DeleteObject"
	}
	return ""
}

// forward sends a request to the server in its own user's name.
func (g *Gate) forward(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(g.To)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host, out.Host = "", to.Scheme, to.Host, to.Host
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	for _, h := range []string{"Authorization", "X-Amz-Security-Token", "X-Amz-Date", "Accept-Encoding"} {
		out.Header.Del(h)
	}
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: g.Key, SecretAccessKey: g.Secret}, out,
		r.Header.Get("X-Amz-Content-Sha256"), "s3", g.Region, time.Now(),
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(out)
}
