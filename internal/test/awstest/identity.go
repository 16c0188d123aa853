package awstest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// signer signs instance identity documents as AWS does: the base64-encoded signature, RSA with SHA-256. Source:
// "Instance identity documents", EC2 User Guide.
type signer struct {
	key  *rsa.PrivateKey
	cert []byte // in PEM
}

func newSigner() (*signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key to sign with: %w", err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"a cloud for tests"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &signer{key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// Sign returns the signature of a document, in the form of the metadata service.
func (s *Server) Sign(document []byte) (string, error) {
	sum := sha256.Sum256(document)
	b, err := rsa.SignPKCS1v15(rand.Reader, s.signer.key, crypto.SHA256, sum[:])
	return base64.StdEncoding.EncodeToString(b), err
}

// Certificate returns the certificate of the signatures, in PEM.
func (s *Server) Certificate() []byte { return s.signer.cert }
