package kubetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// A cluster has 16 ports, of which the first is a multiple of 16: the addresses of its real nodes follow from it.
const (
	firstPort = 10000
	lastPort  = 17984 // above are those of other tests
	portsEach = 16
)

// takePorts returns the first port of a cluster's in the folder, and its lock: no other test of this machine has these
// ports until the lock is closed.
func takePorts(dir string) (port int, lock *os.File, err error) {
	const slots = (lastPort - firstPort) / portsEach
	for i := range slots {
		port = firstPort + (os.Getpid()*7+i)%slots*portsEach
		lock = take(filepath.Join(os.TempDir(), fmt.Sprintf("scrimp-kube-%d.lock", port)))
		if lock == nil {
			continue
		}
		if !free(port) {
			_ = lock.Close()
			continue
		}
		if err := errors.Join(lock.Truncate(0), os.WriteFile(lock.Name(), []byte(dir), 0o600)); err != nil {
			return 0, nil, errors.Join(err, lock.Close())
		}
		return port, lock, nil
	}
	return 0, nil, errors.New("start a cluster: no ports are free")
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
func sweep() (err error) {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), "scrimp-kube-*.lock"))
	for _, path := range locks {
		lock := take(path)
		if lock == nil {
			continue
		}
		dir, _ := os.ReadFile(path)
		if _, none := os.Stat(filepath.Join(string(dir), "etc", "port")); len(dir) > 0 && none == nil {
			err = errors.Join(err, (&Cluster{Dir: string(dir)}).end())
		}
		_ = lock.Close()
	}
	return err
}

func free(first int) bool {
	for p := first; p < first+portsEach; p++ {
		l, err := net.Listen("tcp", fmt.Sprint(":", p)) //nolint:noctx // it does not wait
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
