//go:build !local

package aws

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/must"
)

// paper returns the identity document of an instance, as the metadata service writes it.
func paper(account, region, instance string) []byte {
	return fmt.Appendf(nil, "{\n  \"accountId\" : %q,\n  \"architecture\" : \"x86_64\",\n"+
		"  \"availabilityZone\" : \"us-east-1a\",\n"+
		"  \"instanceId\" : %q,\n  \"pendingTime\" : \"2026-11-23T18:35:41Z\",\n  \"region\" : %q,\n"+
		"  \"version\" : \"2017-09-30\"\n}", account, instance, region)
}

// A machine is admitted by a document that the provider has signed, and by nothing else.
func TestIdentify_AdmitsOnlySignedDocuments(t *testing.T) {
	s, other := newSite(t, awstest.Options{}), newSite(t, awstest.Options{})
	setenv(t, map[string]string{"AWS_ACCESS_KEY_ID": s.Key, "AWS_SECRET_ACCESS_KEY": s.Secret})
	s.with.Certificate = filepath.Join(t.TempDir(), "cloud.pem")
	must.Do(t, os.WriteFile(s.with.Certificate, s.Certificate(), 0o600))
	d, ctx := s.driver(), t.Context()
	list, err := d.Launch(ctx, engine.Request{Key: "one", Nodes: 2, Offer: "aws/us-east-1a/c7i.xlarge/on-demand"})
	must.Do(t, err)
	id, ended, foreign := list[0].ID, list[1].ID, s.foreign(t)
	const account, region = "123456789012", "us-east-1"
	signed := func(c *awstest.Server, document []byte) engine.Evidence {
		signature, err := c.Sign(document)
		must.Do(t, err)
		return engine.Evidence{Document: document, Signature: []byte(signature)}
	}
	good := signed(s.Server, paper(account, region, id))
	wrapped := engine.Evidence{Document: good.Document, // in lines, as the metadata service returns it
		Signature: append(append(bytes.Clone(good.Signature[:64]), '\n'), good.Signature[64:]...)}
	for _, d := range []*Driver{d, s.driver()} { // one that launched it, and one that did not
		for _, e := range []engine.Evidence{good, wrapped, signed(s.Server, paper(account, region, ended))} {
			got, key, err := d.Identify(ctx, e)
			if err != nil || !bytes.Contains(e.Document, []byte(got)) || got == "" || key != "one" {
				t.Errorf("%s is %s of %q: %v", e.Document, got, key, err)
			}
		}
	}
	must.Do(t, d.Terminate(ctx, ended))
	changed := bytes.Replace(good.Document, []byte("2017"), []byte("2018"), 1)
	for name, e := range map[string]engine.Evidence{
		"signed by another":           signed(other.Server, good.Document),
		"the signature of another":    {Document: good.Document, Signature: signed(s.Server, changed).Signature},
		"changed":                     {Document: changed, Signature: good.Signature},
		"another machine":             {Document: paper(account, region, foreign), Signature: good.Signature},
		"without signature":           {Document: good.Document},
		"a signature of no base64":    {Document: good.Document, Signature: []byte("§§§")},
		"of another account":          signed(s.Server, paper("999999999999", region, id)),
		"of another region":           signed(s.Server, paper(account, "us-west-2", id)),
		"a machine that is not ours":  signed(s.Server, paper(account, region, foreign)),
		"a machine that never was":    signed(s.Server, paper(account, region, "i-00000000000000000")),
		"a machine that has ended":    signed(s.Server, paper(account, region, ended)),
		"not the name of a machine":   signed(s.Server, paper(account, region, "*")),
		"signed, and no JSON":         signed(s.Server, []byte("garbage")),
		"signed, and not an object":   signed(s.Server, []byte("[]")),
		"signed, and without a field": signed(s.Server, []byte("{}")),
		"nothing":                     {},
	} {
		for _, d := range []*Driver{d, s.driver()} {
			if id, key, err := d.Identify(ctx, e); !errors.Is(err, engine.ErrImpostor) || id != "" || key != "" {
				t.Errorf("%s: %s %s %v", name, id, key, err)
			}
		}
	}
	must.Do(t, s.Inject(awstest.Fault{Kind: "throttle"}))
	if _, _, err := d.Identify(ctx, good); err == nil || errors.Is(err, engine.ErrImpostor) {
		t.Errorf("a cloud that does not answer makes an impostor: %v", err)
	}
}
