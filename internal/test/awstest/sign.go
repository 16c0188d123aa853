package awstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/internal/test/awstest/iam"
)

// A caller is the signer of a request.
type caller struct {
	key, region, service string
	account, arn, id     string
	policies             []*iam.Policy // each must allow; none: a user without restrictions
}

// skew is the largest accepted clock difference of a signature. Source: "Signature Version 4", IAM User Guide: five
// minutes.
const skew = 5 * time.Minute

// identify checks a version 4 signature.
func (s *Server) identify(r *http.Request, body []byte) (caller, error) {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme != "AWS4-HMAC-SHA256" {
		return caller{}, refuse(http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	part := map[string]string{}
	for _, p := range strings.Split(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		part[k] = v
	}
	scope := strings.Split(part["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return caller{}, bad("IncompleteSignature", "Credential %q is not KEY/DATE/REGION/SERVICE/aws4_request",
			part["Credential"])
	}
	c := caller{key: scope[0], region: scope[2], service: scope[3]}
	who, known := s.keys[c.key]
	if !known || who.token != r.Header.Get("X-Amz-Security-Token") {
		return c, unknownKey(c.service)
	}
	if err := s.inTime(c, who, r.Header.Get("X-Amz-Date"), scope[1]); err != nil {
		return c, err
	}
	key := []byte("AWS4" + who.secret)
	for _, p := range scope[1:] {
		key = mac(key, p)
	}
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"),
		hash([]byte(canonical(r, body, part["SignedHeaders"])))}, "\n")
	if !hmac.Equal([]byte(hex.EncodeToString(mac(key, text))), []byte(part["Signature"])) {
		return c, wrongSignature(c.service)
	}
	c.account, c.arn, c.id, c.policies = s.o.Account, who.arn, who.id, who.policies
	return c, nil
}

// inTime returns why a request that was signed at sent, in SigV4's notation, is refused: the clocks differ by too much,
// or the credentials have expired.
func (s *Server) inTime(c caller, who identity, sent, day string) error {
	at, err := time.Parse("20060102T150405Z", sent)
	if err != nil || !strings.HasPrefix(sent, day) {
		return bad("IncompleteSignature", "Date in Credential scope does not match X-Amz-Date %q", sent)
	}
	wall := s.wall()
	if off := wall.Sub(at); off > skew || off < -skew {
		return expired(c.service, at, wall)
	}
	if who.until.IsZero() || wall.Before(who.until) {
		return nil
	}
	if c.service == "ec2" {
		return bad("RequestExpired", "Request has expired.")
	}
	return refuse(http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired")
}

// unknownKey returns the error for an unknown key, which EC2 words differently from newer services. Source: "Error
// codes for the Amazon EC2 API" and "Common errors" of STS.
func unknownKey(service string) error {
	if service == "ec2" {
		return refuse(http.StatusUnauthorized, "AuthFailure",
			"AWS was not able to validate the provided access credentials")
	}
	code := "InvalidClientTokenId"
	if service != "sts" {
		code = "UnrecognizedClientException"
	}
	return refuse(http.StatusForbidden, code, "The security token included in the request is invalid.")
}

// expired returns a service's error for a signature with a wrong clock. Source: "Error codes for the Amazon EC2 API"
// (RequestExpired) and "Troubleshoot Signature Version 4 signing", IAM User Guide.
func expired(service string, at, wall time.Time) error {
	code, status := "SignatureDoesNotMatch", http.StatusForbidden
	switch service {
	case "ec2":
		return bad("RequestExpired", "Request has expired.")
	case "pricing", "savingsplans", "servicequotas":
		code, status = "InvalidSignatureException", http.StatusBadRequest
	}
	const form = "20060102T150405Z"
	if at.After(wall) {
		return refuse(status, code, "Signature not yet current: %s is still later than %s (%s + 5 min.)",
			at.UTC().Format(form), wall.Add(skew).UTC().Format(form), wall.UTC().Format(form))
	}
	return refuse(status, code, "Signature expired: %s is now earlier than %s (%s - 5 min.)", at.UTC().Format(form),
		wall.Add(-skew).UTC().Format(form), wall.UTC().Format(form))
}

func wrongSignature(service string) error {
	if service == "ec2" {
		return refuse(http.StatusUnauthorized, "AuthFailure",
			"AWS was not able to validate the provided access credentials")
	}
	return refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the "+
		"signature you provided. Check your AWS Secret Access Key and signing method.")
}

func canonical(r *http.Request, body []byte, signed string) string {
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	var b strings.Builder
	b.WriteString(r.Method + "\n" + path + "\n" + canonicalQuery(r.URL.Query()) + "\n")
	for _, h := range strings.Split(signed, ";") {
		v := strings.Join(r.Header.Values(h), ",")
		switch h {
		case "host":
			v = r.Host
		case "content-length":
			v = itoa(int(r.ContentLength))
		}
		b.WriteString(h + ":" + strings.Join(strings.Fields(v), " ") + "\n")
	}
	b.WriteString("\n" + signed + "\n" + hash(body))
	return b.String()
}

func canonicalQuery(q url.Values) string {
	var list []string
	for k, vs := range q {
		for _, v := range vs {
			list = append(list, escape(k)+"="+escape(v))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "&")
}

// escape keeps the unreserved characters of RFC 3986.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
