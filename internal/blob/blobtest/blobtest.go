// Package blobtest gives tests real stores: a folder in memory, and servers of S3, Google Cloud Storage and Azure Blob.
package blobtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Missing skips a test for want of a component, and fails it in CI, where all are installed.
func Missing(t testing.TB, name string) {
	t.Helper()
	message := "skipped: " + name + " is not installed; .ci/run installs it"
	if os.Getenv("SCRIMP_CI") == "1" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// bucket is the one that a server begins with.
const bucket = "scrimp-test"

// S3 starts a versitygw with one empty bucket for this test, sets the
// credentials in the environment, and returns the bucket's address and the
// folder that holds its objects as files.
func S3(t testing.TB) (address, dir string) {
	t.Helper()
	path := program(t, "SCRIMP_VERSITYGW", "versitygw")
	root := t.TempDir()
	dir = filepath.Join(root, bucket)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	serve(t, port, path, "--access", "testkey", "--secret", "testsecret", "--port", port, "--quiet", "posix", root)
	t.Setenv("AWS_ACCESS_KEY_ID", "testkey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return fmt.Sprintf("s3://%s?endpoint=http://%s&region=us-east-1", bucket, port), dir
}

// program is the path of a server that tests run: what a variable says, or what is in the path.
func program(t testing.TB, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name)
	}
	return path
}

// serve runs a server until the test ends, and returns when it answers at an address.
func serve(t testing.TB, address, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = tied()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for until := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", path, err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatalf("%s does not answer on %s: %v", path, address, err)
		}
	}
}

// freePort returns an address on this machine that nobody listens on.
func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
