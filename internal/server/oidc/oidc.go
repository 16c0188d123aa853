// Package oidc signs people in by an OpenID Connect provider: the authorization code flow, with PKCE, state and nonce.
// It says who somebody is, by an email address, and which roles the groups of that person have; it keeps no users.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"scrimp/client"
	"scrimp/internal/lib/identity"
)

// Provider signs people in by one provider.
type Provider struct {
	settings Settings
	host     string
	grants   map[string][]identity.Grant // by group
	out      outward
	client   *http.Client
	seal     seal
	spent    spent
	now      func() time.Time
	log      *slog.Logger
	room     chan struct{} // has room for the sign-ins that end at once

	found  atomic.Pointer[found]
	asking chan struct{} // has room for those who wait until the provider has answered for the first time

	mu     sync.Mutex // guards the fields below; the one who asks the provider holds it
	failed time.Time  // time of the last try without an answer
	cause  error      // its error
}

// found is what the provider says about itself.
type found struct {
	by    *oidc.IDTokenVerifier
	oauth oauth2.Config // without the secret
}

// Person is somebody whom the provider has identified.
type Person struct {
	Email  string
	Grants []identity.Grant // of their groups
	Mapped bool             // there is a group map: Grants say what they may do
}

// atOnce is how many sign-ins may end at the same time: each sends requests to the provider.
const atOnce = 16

// again is how long a server waits before it asks a provider that did not answer once more.
const again = 5 * time.Second

// algorithms lists the signatures that the server accepts: those with a public key. It has neither none nor those in
// which the secret is the key.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256,
	oidc.ES384, oidc.ES512, oidc.EdDSA}

// New returns the provider of the settings; nil if they name none. It asks the provider nothing yet.
func New(s Settings, now func() time.Time, log *slog.Logger) (*Provider, error) {
	if !s.given() {
		return nil, nil
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	u, err := s.issuer()
	if err != nil {
		return nil, err
	}
	p := &Provider{settings: s, host: u.Host, now: now, log: log, room: make(chan struct{}, atOnce),
		asking: make(chan struct{}, atOnce)}
	p.settings.Claim, p.settings.GroupClaim = cmp.Or(s.Claim, emailClaim), cmp.Or(s.GroupClaim, groupsClaim)
	if p.grants, err = s.groups(); err != nil {
		return nil, err
	}
	if p.seal, err = newSeal(); err != nil {
		return nil, err
	}
	p.out = outward{plain: u.Scheme == "http", by: http.DefaultTransport}
	p.client = p.out.client()
	return p, nil
}

// Host returns the host of the provider.
func (p *Provider) Host() string { return p.host }

// problem returns the error that a reader sees.
func problem(status int, title, fix string) *client.Problem {
	return &client.Problem{Status: status, Title: title, Fix: fix}
}

// away answers while the provider does not, and logs why.
func (p *Provider) away(cause error) error {
	p.log.Warn("the identity provider does not answer as it should", "issuer", p.settings.Issuer, "error", cause)
	return problem(http.StatusBadGateway, p.host+" does not answer as an identity provider does",
		"try again in a minute, or sign in with a token; the server's log has the cause")
}

// discover asks the provider for its addresses, once.
func (p *Provider) discover(ctx context.Context) (*found, error) {
	if f := p.found.Load(); f != nil {
		return f, nil
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	default:
		return nil, errors.New("too many people wait for its first answer")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.found.Load(); f != nil {
		return f, nil
	}
	if since := p.now().Sub(p.failed); p.cause != nil && since >= 0 && since < again {
		return nil, p.cause
	}
	f, err := p.ask(ctx)
	if err != nil {
		p.failed, p.cause = p.now(), err
		return nil, err
	}
	p.found.Store(f)
	return f, nil
}

// ask asks the provider for its addresses.
func (p *Provider) ask(ctx context.Context) (*found, error) {
	// The provider outlives the request that asks first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	by, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.settings.Issuer)
	if err != nil {
		return nil, err
	}
	var says struct {
		JWKS    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Scopes  []string `json:"scopes_supported"`
	}
	if err := by.Claims(&says); err != nil {
		return nil, err
	}
	end := by.Endpoint()
	for _, address := range []string{end.AuthURL, end.TokenURL, says.JWKS} {
		if u, err := url.Parse(address); err != nil || !p.out.allows(u.Scheme, u.Hostname()) {
			return nil, fmt.Errorf("it names the address %q, which must begin with https", address)
		}
	}
	end.AuthStyle = oauth2.AuthStyleInHeader
	if len(says.Methods) > 0 && !slices.Contains(says.Methods, "client_secret_basic") {
		if !slices.Contains(says.Methods, "client_secret_post") {
			return nil, errors.New("it accepts a client's secret neither in a header nor in a form")
		}
		end.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if len(p.grants) > 0 && slices.Contains(says.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	keys := oidc.ClientContext(context.Background(), p.client)
	return &found{
		by: by.VerifierContext(keys, &oidc.Config{ClientID: p.settings.Client, SupportedSigningAlgs: algorithms,
			Now: p.now}),
		oauth: oauth2.Config{ClientID: p.settings.Client, Endpoint: end, Scopes: scopes},
	}, nil
}
