package kubetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A cluster has 16 ports, of which the first is a multiple of 16: the addresses of its real nodes follow from it.
const (
	firstPort = 10000
	lastPort  = 17984 // above are those of other tests
	portsEach = 16
)

// takePorts is the first port of a cluster's in the folder, which no other test of this machine has until this one
// ends.
func takePorts(t testing.TB, dir string) int {
	t.Helper()
	const slots = (lastPort - firstPort) / portsEach
	for i := range slots {
		port := firstPort + (os.Getpid()*7+i)%slots*portsEach
		lock := take(filepath.Join(os.TempDir(), fmt.Sprintf("scrimp-kube-%d.lock", port)))
		if lock == nil {
			continue
		}
		if !free(t, port) {
			_ = lock.Close()
			continue
		}
		if err := errors.Join(lock.Truncate(0), os.WriteFile(lock.Name(), []byte(dir), 0o600)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		return port
	}
	t.Fatal("no ports are free")
	return 0
}

// take is the lock of that path, or nil where another test holds it.
func take(path string) *os.File {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil // of another user
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil
	}
	return lock
}

// sweep ends the clusters of tests that were killed: their locks name their folders, and nobody holds them.
func sweep(t testing.TB) {
	t.Helper()
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), "scrimp-kube-*.lock"))
	for _, path := range locks {
		lock := take(path)
		if lock == nil {
			continue
		}
		dir, _ := os.ReadFile(path)
		if _, err := os.Stat(filepath.Join(string(dir), "etc", "port")); len(dir) > 0 && err == nil {
			old := &Cluster{Dir: string(dir)}
			old.script(t, "kube-down.sh")
			_ = os.RemoveAll(old.Dir)
		}
		_ = lock.Close()
	}
}

func free(t testing.TB, first int) bool {
	for p := first; p < first+portsEach; p++ {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprint(":", p))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
