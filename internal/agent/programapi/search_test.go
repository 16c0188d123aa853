package programapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// searching is a Backend whose server answers with a status; 0: it does not answer.
type searching struct {
	calm
	status int
	heard  *string
}

func (s searching) Search(_ context.Context, body []byte) (int, []byte, error) {
	*s.heard = string(body)
	if s.status == 0 {
		return 0, nil, errors.New("no server")
	}
	return s.status, []byte(`{"do":"train"}`), nil
}

func TestSearch_PassesCallsAndAnswersUnchanged(t *testing.T) {
	for _, c := range []struct {
		status, want int
		kind, says   string
	}{
		{200, 200, "application/json", `{"do":"train"}`}, {409, 409, "application/problem+json", `{"do":"train"}`},
		{0, 502, "application/problem+json", "no server"},
	} {
		heard := ""
		p, err := Serve(searching{status: c.status, heard: &heard}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for token, want := range map[string]int{p.Token: c.want, "another": http.StatusUnauthorized} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/search", strings.NewReader(`{"name":"mine"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("it answers with %d, want %d", resp.StatusCode, want)
			}
			if want == c.want && (!strings.Contains(string(text), c.says) || heard != `{"name":"mine"}` || resp.Header.Get("Content-Type") != c.kind) {
				t.Errorf("%d: the server hears %s, and the program %s of %s", want, heard, text, resp.Header.Get("Content-Type"))
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
