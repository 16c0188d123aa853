package oidc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Reasons for which this package itself refuses an ID token.
var (
	errNonce = errors.New("its nonce is that of another sign-in")
	errParty = errors.New("it was issued to another client (azp)")
)

// invalid answers that an ID token is not valid, why, and what the reader can do. Errors that are for the reader pass
// through. The answer repeats nothing of the token; the log has the library's error.
func (p *Provider) invalid(err error) error {
	if err == nil {
		return nil
	}
	if said, is := errors.AsType[*unknownError](err); is {
		return problem(http.StatusForbidden, said.title, said.fix)
	}
	p.log.Warn("an ID token is not valid", "issuer", p.settings.Issuer, "error", fmt.Sprintf("%.300s", err.Error()))
	why, fix := p.reason(err)
	return problem(http.StatusForbidden, "the ID token of "+p.host+" is not valid: "+why, fix)
}

// reason returns why an ID token is not valid, and the fix. The library has one error of its own type; the others are
// known by their texts, and an unknown text gets the general answer.
func (p *Provider) reason(err error) (why, fix string) {
	begin, text := "begin the sign-in again", err.Error()
	_, expired := errors.AsType[*oidc.TokenExpiredError](err)
	switch {
	case expired, strings.Contains(text, "nbf"):
		return "it has expired, or is not valid yet", begin + "; if that does not help, ask an admin to compare the clocks " +
			"of this server and of " + p.host
	case errors.Is(err, errParty), strings.Contains(text, "audience"):
		return "it is for another client", "ask an admin to compare scrimp serve --oidc-client with the ID that " + p.host +
			" gave this server"
	case strings.Contains(text, "different provider"):
		return "it is of another issuer", "ask an admin to compare scrimp serve --oidc-issuer with the issuer of " + p.host
	case errors.Is(err, errNonce):
		return "it belongs to another sign-in", begin
	}
	return "its signature or its form is wrong", begin + "; if that does not help, the server's log has the cause"
}
