package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
)

// unwell matches the status of a provider that may answer later.
var unwell = regexp.MustCompile(`^(5\d\d|429) `)

// Check asks the provider for its addresses once. An answer with which nobody can sign in is an error that names the
// flag and the fix. No answer is none: the provider may be back before the first sign-in, and jobs must not wait for
// it, so Check logs it. The nil Provider is fine.
func (p *Provider) Check(ctx context.Context) error {
	if p == nil {
		return nil
	}
	_, err := p.ask(ctx)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return p.hopeless(err)
}

// hopeless returns the error of a provider with which nobody can ever sign in. It logs an error that may pass.
func (p *Provider) hopeless(err error) error {
	cause := fmt.Sprintf("%.300s", err.Error())
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	name, dns := errors.AsType[*net.DNSError](err)
	_, unreached := errors.AsType[*url.Error](err)
	switch {
	case untrusted:
		return fmt.Errorf("--oidc-issuer %s: %s: install the certificate of its authority on this machine", p.settings.Issuer,
			cause)
	case dns && name.IsNotFound:
		return fmt.Errorf("--oidc-issuer %s: no host has this name: correct the address", p.settings.Issuer)
	case unreached, unwell.MatchString(cause):
		p.log.Warn("the identity provider does not answer, so nobody can sign in by it yet: if that lasts, correct "+
			"--oidc-issuer", "issuer", p.settings.Issuer, "error", cause)
		return nil
	}
	return fmt.Errorf("--oidc-issuer %s: what it says at /.well-known/openid-configuration is not usable: %s: write the "+
		"issuer exactly as the provider gives it", p.settings.Issuer, cause)
}
