package agent

import (
	"context"
	"crypto/x509"
	"fmt"

	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/wire"
	"scrimp/internal/wire/api"
)

// Identify proves to the server which machine of the engine this is, with the identity document
// that AWS signs and the metadata service at base returns. It stores the registration token in the
// machine's folder and returns the machine's id.
func Identify(
	ctx context.Context,
	server, machine, engine, base string,
	roots *x509.CertPool,
) (instance string, err error) {
	ctx, cancel := context.WithTimeout(ctx, defaultRegisterFor)
	defer cancel()
	var got api.Identified
	err = wire.Retry(ctx, func(ctx context.Context) error {
		document, signature, err := notice.Identity(ctx, base, nil)
		if err != nil {
			return err
		}
		got, err = wire.Identify(ctx, server, roots, api.Identification{Engine: engine, Document: document,
			Signature: signature})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("identify the machine to the server: %w", err)
	}
	return got.Instance, KeepToken(machine, got.Token)
}
