//go:build !local

package blobtest

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"scrimp/internal/test/must"
)

// azuriteKey is the key of Azurite's own account, as Microsoft publishes it.
const (
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// GCS starts a fake-gcs-server with one empty bucket for this test, and returns the bucket's address.
func GCS(t testing.TB) (address string) {
	t.Helper()
	path := program(t, "SCRIMP_FAKE_GCS_SERVER", "fake-gcs-server")
	at := serve(t, path, func(at string) []string {
		_, port, _ := net.SplitHostPort(at)
		return []string{"-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory",
			"-external-url", "http://" + at, "-public-host", at, "-log-level", "error"}
	})
	r, err := http.Post("http://"+at+"/storage/v1/b?project=test", "application/json",
		strings.NewReader(`{"name":"`+bucket+`"}`))
	must.Do(t, err)
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("make a bucket: %s", r.Status)
	}
	return "gs://" + bucket + "?endpoint=http://" + at
}

// Azure starts an Azurite with one empty container for this test, sets the credentials in the environment, and
// returns the container's address.
func Azure(t testing.TB) (address string) {
	t.Helper()
	path := program(t, "SCRIMP_AZURITE", "azurite-blob")
	at := serve(t, path, func(at string) []string {
		host, port, _ := net.SplitHostPort(at)
		return []string{"--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry",
			"--skipApiVersionCheck"}
	})
	t.Setenv("AZURE_STORAGE_ACCOUNT", azuriteAccount)
	t.Setenv("AZURE_STORAGE_KEY", azuriteKey)
	endpoint := "http://" + at + "/" + azuriteAccount
	signs, err := container.NewSharedKeyCredential(azuriteAccount, azuriteKey)
	must.Do(t, err)
	c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+bucket, signs, nil)
	if err == nil {
		_, err = c.Create(t.Context(), nil)
	}
	must.Do(t, err)
	return "azblob://" + bucket + "?account=" + azuriteAccount + "&endpoint=" + endpoint
}
