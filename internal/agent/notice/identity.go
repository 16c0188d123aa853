package notice

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Paths of the identity document that AWS signs, and of its signature, in EC2's metadata.
const (
	awsDocument  = "/latest/dynamic/instance-identity/document"
	awsSignature = "/latest/dynamic/instance-identity/signature"
)

// Identity returns AWS's identity document of this machine and its signature, from the metadata
// service at base. A nil client means one without a proxy.
func Identity(ctx context.Context, base string, client *http.Client) (document, signature string, err error) {
	if client == nil {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		client = &http.Client{Transport: transport}
	}
	w := &aws{base: strings.TrimRight(base, "/"), http: client}
	d, there, err := w.read(ctx, awsDocument)
	if err != nil {
		return "", "", err
	}
	s, signed, err := w.read(ctx, awsSignature)
	if err == nil && (!there || !signed) {
		err = errors.New("the metadata service has no signed identity document")
	}
	return string(d), string(s), err
}
