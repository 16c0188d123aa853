package awstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A call is a request to EC2 or STS.
type call struct {
	params
	s      *Server
	caller caller
	action string
	region string
	now    time.Time
	dry    bool
	// planned holds vCPUs by quota that a fleet has divided but not launched yet.
	planned map[string]int
	trial   bool // instances are divided but not launched
}

// ready must be called by every action after it has read its parameters and before it changes anything.
func (c *call) ready() error {
	if err := c.end(); err != nil {
		return err
	}
	if err := c.allowed(); err != nil {
		return err
	}
	if c.dry {
		return refuse(http.StatusPreconditionFailed, "DryRunOperation",
			"Request would have succeeded, but DryRun flag is set.")
	}
	return nil
}

const version = "2016-11-15"

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_test/") {
		s.control(w, r)
		return
	}
	w.Header().Set("Date", s.wall().UTC().Format(http.TimeFormat)) // clients with a wrong clock sign again with it
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
		return
	}
	c, err := s.identify(r, body)
	if err != nil {
		s.answerError(w, c.service, err)
		return
	}
	switch c.service {
	case "ec2", "sts":
		s.query(w, r, c, body)
	case "pricing", "savingsplans", "servicequotas":
		s.jsonServices(w, r, c, body)
	default:
		s.answerError(w, c.service, refuse(http.StatusForbidden, "SignatureDoesNotMatch",
			"Credential should be scoped to a service of this cloud, not %q", c.service))
	}
}

func (s *Server) query(w http.ResponseWriter, r *http.Request, who caller, body []byte) {
	form, err := formOf(r, body)
	if err != nil {
		s.answerError(w, who.service, bad("MalformedQueryString", "The query string contains a syntax error"))
		return
	}
	p := newParams(form)
	action, wanted := p.str("Action"), p.str("Version")
	table, ns, right := ec2, "http://ec2.amazonaws.com/doc/"+version+"/", version
	if who.service == "sts" {
		table, ns, right = sts, "https://sts.amazonaws.com/doc/2011-06-15/", "2011-06-15"
	}
	do, known := table[action]
	if !known || wanted != right {
		s.answerError(w, who.service, bad("InvalidAction", "The action %s is not valid for this web service, version %s.",
			action, wanted))
		return
	}
	f := s.meet(action)
	s.pause(r.Context(), f.wait)
	if f.down {
		cut(w)
		return
	}
	if f.err != nil {
		s.answerError(w, who.service, f.err)
		return
	}
	c := &call{params: p, s: s, caller: who, action: action, region: who.region}
	if who.service == "ec2" {
		c.dry = p.flag("DryRun", false)
	}
	out, err := s.do(c, do)
	if f.twice && err == nil {
		out, err = s.do(&call{params: newParams(form).known(p), s: s, caller: who, action: action, region: who.region}, do)
	}
	if f.cut {
		cut(w)
		return
	}
	if err != nil {
		s.answerError(w, who.service, err)
		return
	}
	s.answer(w, who.service, action, ns, out)
}

// formOf returns the parameters of a request, from its query string and its body.
func formOf(r *http.Request, body []byte) (url.Values, error) {
	form := r.URL.Query()
	more, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	for k, v := range more {
		form[k] = append(form[k], v...)
	}
	return form, nil
}

// pause waits for the span of a fault, and no longer than the caller or the server does.
func (s *Server) pause(ctx context.Context, span time.Duration) {
	if span <= 0 {
		return
	}
	select {
	case <-time.After(span):
	case <-ctx.Done():
	case <-s.stop:
	}
}

// known returns p with the parameters that others have read.
func (p params) known(other params) params {
	for key := range other.used {
		p.used[key] = true
	}
	return p
}

// do handles a request as one step.
func (s *Server) do(c *call, do func(*call) (*node, error)) (*node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.now()
	s.advance(c.now)
	if c.region != "" && len(s.zonesOf(c.region)) == 0 { // the response of a region that the account has not enabled
		return nil, unknownKey(c.caller.service)
	}
	return do(c)
}

func (s *Server) answer(w http.ResponseWriter, service, action, ns string, out *node) {
	var b strings.Builder
	id := requestID()
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<%sResponse xmlns=%q>", action, ns)
	if service == "sts" {
		out.name = action + "Result"
		out.write(&b)
		x("ResponseMetadata", x("RequestId", id)).write(&b)
	} else {
		x("requestId", id).write(&b)
		for _, k := range out.kids {
			if k != nil {
				k.write(&b)
			}
		}
	}
	fmt.Fprintf(&b, "</%sResponse>", action)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("Content-Length", itoa(b.Len()))
	_, _ = io.Copy(w, bytes.NewBufferString(b.String())) // the client may have left
}

func (s *Server) answerError(w http.ResponseWriter, service string, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = refuse(http.StatusInternalServerError, "InternalError", "%v", err)
	}
	var b strings.Builder
	switch service {
	case "pricing", "savingsplans", "servicequotas":
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.Header().Set("X-Amzn-Errortype", e.code)
		fmt.Fprintf(&b, `{"__type":%q,"message":%q}`, e.code, e.message)
	case "sts":
		w.Header().Set("Content-Type", "text/xml")
		x("ErrorResponse", x("Error", x("Type", "Sender"), x("Code", e.code), x("Message", e.message)),
			x("RequestId", requestID())).write(&b)
	default:
		w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
		b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
		x("Response", x("Errors", x("Error", x("Code", e.code), x("Message", e.message))),
			x("RequestID", requestID())).write(&b)
	}
	w.WriteHeader(e.status)
	_, _ = io.WriteString(w, b.String()) // the client may have left
}

// cut closes the connection without a response.
func cut(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}

func (c *call) allowed() error {
	if c.caller.service == "sts" {
		return nil // a session may always get its own identity
	}
	for _, p := range c.caller.policies {
		if allow, deny := p.Decide(c.caller.service + ":" + c.action); !allow {
			return unauthorized(c.action, deny)
		}
	}
	return nil
}
