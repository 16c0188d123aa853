package httpsig

import (
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// A request is accepted once, unchanged, within the allowance, and never otherwise.
func TestCheck_AcceptsASignedRequestOnce(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	_, other, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		key    ed25519.PrivateKey
		change func(*http.Request)
		skew   time.Duration
		body   string
		want   error
	}{
		"as it was signed":    {},
		"a minute behind":     {skew: -Allowance},
		"a minute ahead":      {skew: Allowance},
		"more behind":         {skew: -Allowance - time.Second, want: ErrClock},
		"more ahead":          {skew: Allowance + time.Second, want: ErrClock},
		"by another key":      {key: other, want: ErrNone},
		"another body":        {body: "{} ", want: ErrNone},
		"another method":      {change: func(r *http.Request) { r.Method = "GET" }, want: ErrNone},
		"another route":       {change: func(r *http.Request) { r.URL.Path = "/v1/agent/binary" }, want: ErrNone},
		"another query":       {change: func(r *http.Request) { r.URL.RawQuery = "a=1" }, want: ErrNone},
		"another instance":    {change: func(r *http.Request) { r.Header.Set(Instance, "i-2") }, want: ErrNone},
		"another time":        {change: func(r *http.Request) { r.Header.Set(at, "1767225600001") }, want: ErrNone},
		"another nonce":       {change: func(r *http.Request) { r.Header.Set(nonce, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") }, want: ErrNone},
		"no nonce":            {change: func(r *http.Request) { r.Header.Del(nonce) }, want: ErrNone},
		"no signature at all": {change: func(r *http.Request) { r.Header = http.Header{} }, want: ErrNone},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/pull", nil)
			key := private
			if c.key != nil {
				key = c.key
			}
			Sign(r, key, "i-1", now.Add(c.skew), []byte("{}"))
			if c.change != nil {
				c.change(r)
			}
			body := "{}"
			if c.body != "" {
				body = c.body
			}
			var seen Seen
			if err := seen.Check(r, public, now, []byte(body)); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.want != nil {
				return
			}
			if err := seen.Check(r, public, now, []byte(body)); !errors.Is(err, ErrReplay) {
				t.Errorf("a second time: %v", err)
			}
			// Forgotten signatures are too old to be accepted.
			for span := time.Duration(0); span < 5*Allowance; span += Allowance / 7 {
				if err := seen.Check(r, public, now.Add(span), []byte(body)); err == nil {
					t.Fatalf("taken again after %v", span)
				}
			}
			if later := (&Seen{Since: now.Add(c.skew + time.Second)}); !errors.Is(later.Check(r, public, now, []byte(body)), ErrBefore) {
				t.Error("a server that began later takes what another may have taken")
			}
		})
	}
}

// A machine that calls a newly started server at once signs with the server's time, and is accepted immediately.
func TestDate_IsUsableAtOnce(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	for _, began := range []time.Duration{0, 1, 999_999, 500 * time.Millisecond, time.Second - 1} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(began)
		seen, answer := Seen{Since: now}, http.Header{}
		Date(answer, now)
		at, ok := DateOf(answer)
		if !ok || now.Sub(at) >= time.Millisecond || now.Before(at) {
			t.Fatalf("the time %v is told as %v, %v", now, at, ok)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/pull", nil)
		Sign(r, private, "i-1", at, []byte("{}"))
		if err := seen.Check(r, public, now, []byte("{}")); err != nil {
			t.Errorf("%v after the second: %v", began, err)
		}
	}
	if at, ok := DateOf(http.Header{}); ok {
		t.Errorf("an answer without a time has %v", at)
	}
}

func TestParse_InvertsEncode(t *testing.T) {
	t.Parallel()
	public, _, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	if got, err := Parse(Encode(public)); err != nil || !got.Equal(public) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x", "AAAA", Encode(public) + "AA"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a key", bad)
		}
	}
}
