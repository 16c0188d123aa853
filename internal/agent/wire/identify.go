package wire

import (
	"context"
	"crypto/x509"
	"net/http"

	"scrimp/internal/wire/api"
)

// Identify identifies this machine to a server, and returns its id and the token with which it
// registers. It returns ErrFenced if the server does not know the machine.
func Identify(
	ctx context.Context,
	server string,
	roots *x509.CertPool,
	shown api.Identification,
) (api.Identified, error) {
	m, err := DialMachine(server, "", nil, "")
	if err != nil {
		return api.Identified{}, err
	}
	defer m.Close()
	m.Trust(roots)
	m.http.show = func(*http.Request, []byte) {} // the machine has no key yet
	var out api.Identified
	err = m.http.json(ctx, http.MethodPost, "/v1/agent/identify", shown, &out)
	return out, err
}
