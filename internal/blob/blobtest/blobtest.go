// Package blobtest gives tests real stores: a folder in memory, and an S3 server.
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

// Fast returns a new folder in memory, where the system has one: a sync costs nothing there.
func Fast(t testing.TB) string {
	t.Helper()
	if stat, err := os.Stat("/dev/shm"); err != nil || !stat.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "scrimp-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// S3 starts a versitygw with one empty bucket for this test, sets the
// credentials in the environment, and returns the bucket's address and the
// folder that holds its objects as files.
func S3(t testing.TB) (address, dir string) {
	t.Helper()
	path := os.Getenv("SCRIMP_VERSITYGW")
	if path == "" {
		var err error
		if path, err = exec.LookPath("versitygw"); err != nil {
			Missing(t, "versitygw")
		}
	}
	const bucket = "scrimp-test"
	root := t.TempDir()
	dir = filepath.Join(root, bucket)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	cmd := exec.Command(path, "--access", "testkey", "--secret", "testsecret", "--port", port, "--quiet", "posix", root)
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
		c, err := net.Dial("tcp", port)
		if err == nil {
			_ = c.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("versitygw ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatalf("versitygw does not answer on %s: %v", port, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "testkey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return fmt.Sprintf("s3://%s?endpoint=http://%s&region=us-east-1", bucket, port), dir
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
