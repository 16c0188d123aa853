// Package blobtest provides real stores for tests: a folder in memory, and servers of S3, Google Cloud Storage and
// Azure Blob.
package blobtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// bucket is the bucket that each server starts with.
const bucket = "scrimp-test"

// S3 starts a versitygw with one empty bucket for this test and sets the credentials in the environment. It returns
// the bucket's address and the folder with its objects as files.
func S3(t testing.TB) (address, dir string) {
	t.Helper()
	path := program(t, "SCRIMP_VERSITYGW", "versitygw")
	root := t.TempDir()
	dir = filepath.Join(root, bucket)
	must.Do(t, os.Mkdir(dir, 0o755))
	at := serve(t, path, func(at string) []string {
		return []string{"--access", "testkey", "--secret", "testsecret", "--port", at, "--quiet", "posix", root}
	})
	t.Setenv("AWS_ACCESS_KEY_ID", "testkey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return fmt.Sprintf("s3://%s?endpoint=http://%s&region=us-east-1", bucket, at), dir
}

// program returns the path of a server program: from an environment variable, or from the PATH.
func program(t testing.TB, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name, variable)
	}
	return path
}

// missing ends a test whose server is not installed: as a failure in the component lane, which someone ran to see it
// pass, and as a skip elsewhere.
func missing(t testing.TB, name, variable string) {
	t.Helper()
	why := fmt.Sprintf("%s is not installed: .ci/run installs it, or set %s to its path", name, variable)
	if lane.Current() == lane.Components {
		t.Fatal(why)
		return
	}
	t.Skip("suite objects: " + why)
}

// serve runs a server until the test ends, and returns its address. The servers do not accept an open listener, so
// if another program takes the port first, serve retries with another one.
func serve(t testing.TB, path string, args func(address string) []string) (address string) {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		address = l.Addr().String()
		_ = l.Close()
		var said bytes.Buffer
		cmd := exec.Command(path, args(address)...)
		cmd.SysProcAttr = tied()
		cmd.Stdout, cmd.Stderr = &said, &said
		p := proc.Start(t, cmd)
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		up := false
		eventually.True(t, path+" answers at "+address+" or ends", func() bool {
			select {
			case err = <-ended:
				return true
			default:
			}
			c, dialled := net.Dial("tcp", address)
			if up = dialled == nil; up {
				_ = c.Close()
			}
			return up
		})
		if up {
			return address
		}
		text := strings.ToLower(said.String())
		if !strings.Contains(text, "in use") && !strings.Contains(text, "eaddrinuse") {
			t.Fatalf("%s ended: %v\n%s", path, err, text)
		}
	}
}
