// Package iam evaluates IAM policies, as far as the emulated cloud needs them.
package iam

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
)

// A policy is an IAM policy, as far as this cloud evaluates it: effect and action of each statement, on all
// resources. A policy with more is refused when it is set, instead of being half evaluated.
type Policy struct {
	Version   string
	ID        string `json:"Id"`
	Statement statements
}

type statement struct {
	Sid, Effect      string
	Action, Resource words
	// Condition is evaluated for actions of S3 only, which this cloud does not serve; Session.Allows does.
	Condition map[string]map[string]words `json:",omitempty"`
}

// ofS3 reports whether a statement concerns S3 only.
func (st *statement) ofS3() bool {
	return !slices.ContainsFunc(st.Action, func(a string) bool { return !strings.HasPrefix(a, "s3:") })
}

type statements []statement

// UnmarshalJSON accepts one statement or a list.
func (s *statements) UnmarshalJSON(b []byte) error {
	var one statement
	if strings.HasPrefix(string(b), "{") {
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields()
		err := d.Decode(&one)
		*s = statements{one}
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	return d.Decode((*[]statement)(s))
}

type words []string

// UnmarshalJSON accepts one text or a list.
func (w *words) UnmarshalJSON(b []byte) error {
	if strings.HasPrefix(string(b), `"`) {
		*w = words{""}
		return json.Unmarshal(b, &(*w)[0])
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// Parse reads a policy, and refuses one with more than this package evaluates.
func Parse(text string) (*Policy, error) {
	p := &Policy{}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, err
	}
	for _, st := range p.Statement {
		if st.Effect == "Allow" && st.ofS3() && len(st.Resource) > 0 {
			continue
		}
		known := st.Condition == nil && (st.Effect == "Allow" || st.Effect == "Deny")
		if !known || len(st.Resource) != 1 || st.Resource[0] != "*" {
			return nil, errors.New(`it has more than Effect and Action on Resource "*"`)
		}
	}
	return p, nil
}

// Decide reports whether a policy allows an action like ec2:RunInstances, and whether it explicitly denies it.
func (p *Policy) Decide(action string) (allow, deny bool) {
	for _, st := range p.Statement {
		for _, a := range st.Action {
			if ok, _ := path.Match(strings.ToLower(a), strings.ToLower(action)); ok {
				allow = allow || st.Effect == "Allow"
				deny = deny || st.Effect == "Deny"
			}
		}
	}
	return allow && !deny, deny
}
