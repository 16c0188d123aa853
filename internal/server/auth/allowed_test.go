package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
)

// A stream ends exactly when its token expires.
func TestStream_EndsWhenItsTokenExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const life = 3 * time.Hour
		begun := time.Now()
		text, token := identity.Mint([32]byte{1}, "ann", begun, life)
		p := &People{book: identity.NewBook(), revised: make(chan struct{})}
		for _, c := range []identity.Change{{User: &identity.User{Name: "ann", Made: begun}}, {Token: &token}} {
			if wrong, err := p.Change(c, func() error { return nil }); wrong != nil || err != nil {
				t.Fatal(wrong, err)
			}
		}
		caller, err := p.who(text)
		must.Do(t, err)
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), callKey{}, &Call{Caller: caller}), http.MethodGet, "/v1/events", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		ctx, done := (&Gate{People: p}).authorizedContext(r)
		defer done()
		<-ctx.Done()
		if took := time.Since(begun); took != life || !errors.Is(context.Cause(ctx), errRevoked) {
			t.Errorf("the stream of a token of %v ends after %v: %v", life, took, context.Cause(ctx))
		}
	})
}
