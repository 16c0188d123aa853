//go:build !local

// Package identity verifies the identity documents that AWS signs for machines.
package identity

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/setting"
)

//go:embed certificates.pem
var certificates []byte

// signers are the public keys with which AWS signs documents, by region.
var signers = sync.OnceValue(func() map[string]*rsa.PublicKey {
	keys := map[string]*rsa.PublicKey{}
	for rest := certificates; ; {
		region, _, _ := bytes.Cut(rest, []byte("\n-----BEGIN"))
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return keys
		}
		name := string(region[bytes.LastIndexByte(region, '#')+1:])
		key, err := publicKey(block.Bytes)
		if err != nil {
			panic(err) // a bug: the certificates are built in
		}
		keys[strings.TrimSpace(name)] = key
	}
})

func publicKey(der []byte) (*rsa.PublicKey, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	key, ok := c.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the certificate has no RSA key")
	}
	return key, nil
}

// SignerOf returns the key with which documents of this engine's machines are signed.
func SignerOf(w *setting.With) (*rsa.PublicKey, error) {
	if w.SignedBy != nil {
		block, _ := pem.Decode(w.SignedBy)
		if block == nil {
			return nil, fmt.Errorf("with: certificate: %s has none in PEM", w.Certificate)
		}
		return publicKey(block.Bytes)
	}
	if key := signers()[w.Region]; key != nil {
		return key, nil
	}
	return nil, fmt.Errorf(
		"scrimp does not know AWS's certificate for %s: write a file with it as certificate under with: "+
			"docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html has it (RSA)",
		w.Region,
	)
}

// Document holds the fields of an instance identity document that are read. Source: docs.aws.amazon.com, Amazon EC2
// user guide, "Instance identity documents".
type Document struct {
	Account  string `json:"accountId"`
	Region   string `json:"region"`
	Instance string `json:"instanceId"`
}

// Verify returns a machine's identity document if it is signed with the key of the engine's region.
func Verify(w *setting.With, e engine.Evidence) (Document, error) {
	var doc Document
	signer, err := SignerOf(w)
	if err != nil {
		return doc, err
	}
	signature, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(e.Signature), nil)))
	if err != nil {
		return doc, fmt.Errorf("%w: its signature is not base64", engine.ErrImpostor)
	}
	sum := sha256.Sum256(e.Document)
	if rsa.VerifyPKCS1v15(signer, crypto.SHA256, sum[:], signature) != nil {
		return doc, fmt.Errorf("%w: AWS has not signed its document", engine.ErrImpostor)
	}
	if err := json.Unmarshal(e.Document, &doc); err != nil {
		return doc, fmt.Errorf("%w: its document is not JSON", engine.ErrImpostor)
	}
	return doc, nil
}
