// Package oidctest is an OpenID Connect provider for tests. It checks its client as a real one does, and signs ID
// tokens with the standard library alone, so that no library verifies what it has signed itself.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Client and Secret are those under which the server is registered. The secret has characters that a header encodes.
const (
	Client = "scrimp-dashboard"
	Secret = "s3cret/with+signs=&%"
)

// Provider is the provider. Tests change its fields between requests.
type Provider struct {
	URL string // its issuer

	mu      sync.Mutex
	Claims  map[string]any // of the ID token, besides the standard ones, which they replace; a nil value removes one
	Alg     string         // RS256, ES256, HS256 or none
	Forged  bool           // the signature is by a key that the provider does not publish
	Methods []string       // token_endpoint_auth_methods_supported
	Answer  string         // replaces the ID token
	Down    bool           // answers 503
	Issuer  string         // that the discovery names; "": URL
	Token   string         // address for codes; "": its own
	Asked   int            // requests for its discovery
	codes   map[string]url.Values
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	kid     string
}

// New returns a provider that listens on loopback until the test ends.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{Alg: "RS256", codes: map[string]url.Values{}}
	p.Rotate(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.keys)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// Rotate replaces the keys of the provider.
func (p *Provider) Rotate(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.kid = rand.Text()
}

// Set changes the provider.
func (p *Provider) Set(change func(*Provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.Asked++
	issuer, token := p.URL, p.URL+"/token"
	if p.Issuer != "" {
		issuer = p.Issuer
	}
	if p.Token != "" {
		token = p.Token
	}
	answer(w, http.StatusOK, map[string]any{"issuer": issuer, "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": token, "jwks_uri": p.URL + "/keys", "response_types_supported": []string{"code"},
		"token_endpoint_auth_methods_supported": p.Methods, "scopes_supported": []string{"openid", "email", "groups"},
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"}})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	e := []byte{1, 0, 1}
	point, err := p.ec.PublicKey.Bytes() // 4, then x and y
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{
		{"kty": "RSA", "use": "sig", "kid": p.kid + "r", "alg": "RS256", "n": text(p.rsa.N.Bytes()), "e": text(e)},
		{"kty": "EC", "use": "sig", "kid": p.kid + "e", "alg": "ES256", "crv": "P-256", "x": text(point[1:33]),
			"y": text(point[33:])},
	}})
}

// authorize signs its reader in at once, and sends them back.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != Client || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "a parameter is missing", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, header := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if len(p.Methods) > 0 && p.Methods[0] == "client_secret_post" {
		if id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret"); header {
			id = ""
		}
	}
	asked, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != Client || secret != Secret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client",
			"error_description": "wrong secret " + secret}) // as a careless provider does
	case !known || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		text(challenge[:]) != asked.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
	default:
		token := p.Answer
		if token == "" {
			token = p.sign(p.claims(asked.Get("nonce")))
		}
		answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60,
			"id_token": token})
	}
}

func (p *Provider) claims(nonce string) map[string]any {
	now := time.Now()
	all := map[string]any{"iss": p.URL, "sub": "1", "aud": Client, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"nonce": nonce, "email": "ann@example.com", "email_verified": true}
	maps.Copy(all, p.Claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// sign returns an ID token.
func (p *Provider) sign(claims map[string]any) string {
	kid := p.kid + "r"
	if p.Alg == "ES256" {
		kid = p.kid + "e"
	}
	head, _ := json.Marshal(map[string]string{"alg": p.Alg, "kid": kid, "typ": "JWT"})
	body, _ := json.Marshal(claims)
	what := text(head) + "." + text(body)
	sum := sha256.Sum256([]byte(what))
	if p.Forged {
		sum[0]++
	}
	var by []byte
	switch p.Alg {
	case "RS256":
		by, _ = rsa.SignPKCS1v15(nil, p.rsa, crypto.SHA256, sum[:])
	case "ES256":
		r, s, _ := ecdsa.Sign(rand.Reader, p.ec, sum[:])
		by = make([]byte, 64)
		r.FillBytes(by[:32])
		s.FillBytes(by[32:])
	case "HS256": // with the secret of the client
		mac := hmac.New(sha256.New, []byte(Secret))
		mac.Write([]byte(what))
		by = mac.Sum(nil)
	}
	return what + "." + text(by)
}
