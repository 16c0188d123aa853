//go:build !local

package aws

import (
	"bytes"
	"context"
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

	"github.com/aws/aws-sdk-go-v2/service/ec2"

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

// signerOf returns the key with which documents of this engine's machines are signed.
func signerOf(w *setting.With) (*rsa.PublicKey, error) {
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
		"no certificate is known by which AWS signs in %s: write a file with it as certificate under with: "+
			"docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html has it (RSA)",
		w.Region,
	)
}

// document holds the fields of an instance identity document that are read. Source: docs.aws.amazon.com, Amazon EC2
// user guide, "Instance identity documents".
type document struct {
	Account  string `json:"accountId"`
	Region   string `json:"region"`
	Instance string `json:"instanceId"`
}

// Identify implements engine.Identifier.
func (d *Driver) Identify(ctx context.Context, e engine.Evidence) (instance, key string, err error) {
	signer, err := signerOf(&d.with)
	if err != nil {
		return "", "", err
	}
	signature, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(e.Signature), nil)))
	if err != nil {
		return "", "", fmt.Errorf("%w: its signature is not of base64", engine.ErrImpostor)
	}
	sum := sha256.Sum256(e.Document)
	if rsa.VerifyPKCS1v15(signer, crypto.SHA256, sum[:], signature) != nil {
		return "", "", fmt.Errorf("%w: AWS has not signed its document", engine.ErrImpostor)
	}
	var doc document
	if err := json.Unmarshal(e.Document, &doc); err != nil {
		return "", "", fmt.Errorf("%w: its document is not JSON", engine.ErrImpostor)
	}
	a, err := d.connected(ctx)
	if err != nil {
		return "", "", err
	}
	if doc.Account != a.Account || doc.Region != d.with.Region || !instanceID.MatchString(doc.Instance) {
		return "", "", fmt.Errorf("%w: it is of account %q in %q", engine.ErrImpostor, doc.Account, doc.Region)
	}
	list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: ids(doc.Instance)})
	switch {
	case err != nil:
		return "", "", d.explain(err)
	case len(list) == 1 && list[0].State == engine.Running:
		return doc.Instance, list[0].Key, nil
	case len(list) == 0 && d.granted(doc.Instance):
		return "", "", fmt.Errorf("EC2 does not list %s yet: scrimp tries again", doc.Instance)
	}
	return "", "", fmt.Errorf("%w: no machine %s of it runs", engine.ErrImpostor, doc.Instance)
}

// Program implements engine.Identifier.
func (d *Driver) Program() string { return d.build }
