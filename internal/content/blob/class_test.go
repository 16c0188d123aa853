//go:build !local

package blob_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"scrimp/internal/content/blob"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// The storage class that S3 lists reaches the caller.
func TestClass_IsThatOfTheListing(t *testing.T) {
	lane.Component(t, "whole")
	t.Setenv("AWS_ACCESS_KEY_ID", "testkey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`+
			`<Name>models</Name><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>data/a.csv</Key>`+
			`<LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;0cc175b9c0f1b6a831c399e269772661&quot;</ETag><Size>7</Size>`+
			`<StorageClass>GLACIER_IR</StorageClass></Contents></ListBucketResult>`)
	}))
	defer site.Close()
	b, err := blob.OpenExisting(t.Context(), "s3://models?region=us-east-1&endpoint="+site.URL)
	must.Do(t, err)
	defer b.Close()
	o, err := b.List(nil).Next(t.Context())
	if err != nil || blob.Class(o) != "GLACIER_IR" || o.Size != 7 || fmt.Sprintf("%x", o.MD5) != "0cc175b9c0f1b6a831c399e269772661" {
		t.Errorf("%+v, %v", o, err)
	}
}
