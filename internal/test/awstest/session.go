package awstest

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Session is what an assumed role was given for: by whom it is used does not matter, only until when and for what.
type Session struct {
	Role, Name string // ARN of the role, and what the session is called
	Policy     string // of the session, as it was sent; "": all that the role has
	Until      time.Time
}

// Session is that of an access key with its token; ok is false where nobody was given them.
func (s *Server) Session(key, token string) (x Session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, known := s.keys[key]
	if !known || who.session.Role == "" || who.token != token {
		return Session{}, false
	}
	return who.session, true
}

// Allows evaluates the session's policy for an action of S3 on a resource, given the keys of the request, such as
// s3:prefix: a condition on a key that the request does not have is not met. Source: docs.aws.amazon.com, IAM user
// guide, "Policy evaluation logic" and "Condition operators", 2026-11.
func (x *Session) Allows(action, resource string, keys map[string]string) bool {
	p, err := parsePolicy(x.Policy)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p.Statement, func(st statement) bool {
		return st.Effect == "Allow" && slices.ContainsFunc(st.Action, func(a string) bool { return like(a, action) }) &&
			slices.ContainsFunc(st.Resource, func(r string) bool { return like(r, resource) }) && st.met(keys)
	})
}

// met reports whether the conditions hold; an operator that is not known here does not.
func (st *statement) met(keys map[string]string) bool {
	for operator, wanted := range st.Condition {
		for key, values := range wanted {
			has, given := keys[key]
			if operator != "StringLike" || !given || !slices.ContainsFunc(values, func(v string) bool { return like(v, has) }) {
				return false
			}
		}
	}
	return true
}

// like matches text with IAM's patterns, in which * stands for anything, slashes too.
func like(pattern, text string) bool {
	const slash = "\x00" // path.Match's * stops at a slash
	ok, _ := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(text, "/", slash))
	return ok
}
