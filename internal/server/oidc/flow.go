package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"scrimp/internal/lib/identity"
)

// Begin begins a sign-in. It returns the address of the provider to which the reader goes, and what their browser
// keeps meanwhile. The provider sends the reader back to the address back, and End then returns the page to.
func (p *Provider) Begin(ctx context.Context, back, to string) (address, kept string, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", "", p.away(err)
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: back, To: to,
		Until: p.now().Add(FlowLife)}
	if kept, err = p.seal.close(f); err != nil {
		return "", "", p.away(err)
	}
	c := found.oauth
	c.RedirectURL = back
	return c.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), kept, nil
}

// Bounds on what comes back, in bytes.
const (
	longestCode = 4096
	longestKept = 4096
)

// End ends a sign-in with what the provider sent back by the reader's browser, and with what the browser has kept.
func (p *Provider) End(ctx context.Context, back url.Values, kept string) (who Person, to string, err error) {
	f, err := p.flow(back, kept)
	if err != nil {
		return who, "", err
	}
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	default:
		return who, "", problem(http.StatusServiceUnavailable, "too many people sign in at once", "try again in a minute")
	}
	found, err := p.discover(ctx)
	if err != nil {
		return who, "", p.away(err)
	}
	text, err := p.exchange(ctx, found, f, back.Get("code"))
	if err != nil {
		return who, "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), patience)
	defer cancel()
	token, err := found.by.Verify(ctx, text)
	if err == nil {
		who, err = p.person(token, f)
	}
	return who, f.To, p.invalid(err)
}

// flow returns the flow to which an answer belongs, and ends it.
func (p *Provider) flow(back url.Values, kept string) (f flow, err error) {
	begin := "begin the sign-in again"
	ok := len(kept) <= longestKept
	if ok {
		f, ok = p.seal.open(kept)
	}
	code, now := back.Get("code"), p.now()
	iss := back.Get("iss")
	switch {
	case !ok:
		err = problem(http.StatusForbidden, "this browser has not begun a sign-in, or the server has restarted since", begin)
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(back.Get("state"))) != 1:
		err = problem(http.StatusForbidden, "the answer belongs to another sign-in", begin)
	case !now.Before(f.Until):
		err = problem(http.StatusForbidden, "the sign-in took longer than ten minutes", begin)
	case iss != "" && iss != p.settings.Issuer:
		err = problem(http.StatusForbidden, "the answer comes from another identity provider", begin)
	case !p.spent.spend(f, now):
		err = problem(http.StatusForbidden, "this sign-in has already ended", begin)
	case back.Has("error"):
		err = problem(http.StatusForbidden, fmt.Sprintf("%s refuses the sign-in: %.200q", p.host, back.Get("error")),
			"ask its administrator whether you may use this server")
	case code == "" || len(code) > longestCode:
		err = problem(http.StatusForbidden, "the answer of "+p.host+" has no code", begin)
	}
	return f, err
}

// exchange returns the ID token for a code. It logs no answer of the provider, which may repeat the secret.
func (p *Provider) exchange(ctx context.Context, found *found, f flow, code string) (string, error) {
	secret, err := p.settings.secret()
	if err != nil {
		return "", p.away(err)
	}
	c := found.oauth
	c.ClientSecret, c.RedirectURL = secret, f.Back
	got, err := c.Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(f.Verifier))
	if refused, is := errors.AsType[*oauth2.RetrieveError](err); is {
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		p.log.Warn("the identity provider refuses a code", "issuer", p.settings.Issuer, "status", status,
			"error", fmt.Sprintf("%.60q", refused.ErrorCode))
		if status >= http.StatusInternalServerError {
			return "", p.away(fmt.Errorf("it answers a code with status %d", status))
		}
		return "", problem(http.StatusForbidden, p.host+" refuses the code of this sign-in",
			"begin the sign-in again; if that does not help, the server's log has the cause")
	}
	if err != nil {
		return "", p.away(errors.New("the address for codes: no valid answer"))
	}
	text, ok := got.Extra("id_token").(string)
	if !ok {
		return "", p.away(errors.New("the answer to a code has no ID token"))
	}
	return text, nil
}

// unknownError says that a valid ID token does not name a person by whom an admin could mean.
type unknownError struct{ title, fix string }

func (e *unknownError) Error() string { return e.title }

// person returns whom a verified ID token names.
func (p *Provider) person(token *oidc.IDToken, f flow) (who Person, err error) {
	if token.Nonce == "" || subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1 {
		return who, errNonce
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return who, err
	}
	if azp, has := claims["azp"]; azp != any(p.settings.Client) && (has || len(token.Audience) > 1) {
		return who, errParty
	}
	claim := p.settings.Claim
	email, _ := claims[claim].(string)
	if email == "" || identity.WrongEmail(email) != "" {
		return who, &unknownError{fmt.Sprintf("%s gives no email address for you (claim %s)", p.host, claim),
			"ask an admin to name the claim that has it: scrimp serve --oidc-claim"}
	}
	if verified, said := verified(claims["email_verified"]); !verified && (said || claim == emailClaim) {
		return who, &unknownError{fmt.Sprintf("%s does not say that %s is verified", p.host, email),
			"verify the address there, and sign in again; if the provider never says so, ask an admin to name " +
				"another claim with scrimp serve --oidc-claim"}
	}
	who.Email, who.Mapped = email, len(p.grants) > 0
	for _, group := range texts(claims[p.settings.GroupClaim]) {
		who.Grants = append(who.Grants, p.grants[group]...)
	}
	who.Grants = identity.Highest(who.Grants)
	return who, nil
}

// verified reads email_verified, which some providers write as text; said reports whether it is there.
func verified(claim any) (is, said bool) {
	return claim == true || claim == "true", claim != nil
}

// texts returns the texts of a claim: one, or a list.
func texts(claim any) (all []string) {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		for _, v := range c {
			if text, ok := v.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}
