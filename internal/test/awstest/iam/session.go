package iam

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Session is an assumed role with its policy and expiry.
type Session struct {
	Role, Name string // ARN of the role, and the session's name
	Policy     string // session policy as sent; "": everything that the role allows
	Until      time.Time
}

// Allows evaluates the session's policy for an S3 action on a resource, with the condition keys of the request, such
// as s3:prefix. A condition on a missing key is not met. Source: docs.aws.amazon.com, IAM user guide, "Policy
// evaluation logic" and "Condition operators", 2026-11.
func (x *Session) Allows(action, resource string, keys map[string]string) bool {
	p, err := Parse(x.Policy)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p.Statement, func(st statement) bool {
		return st.Effect == "Allow" && slices.ContainsFunc(st.Action, func(a string) bool { return like(a, action) }) &&
			slices.ContainsFunc(st.Resource, func(r string) bool { return like(r, resource) }) && st.met(keys)
	})
}

// met reports whether the conditions hold; unknown operators do not.
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

// like matches text with IAM's patterns, in which * matches anything, including slashes.
func like(pattern, text string) bool {
	const slash = "\x00" // path.Match's * stops at a slash
	ok, _ := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(text, "/", slash))
	return ok
}
