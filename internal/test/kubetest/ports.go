package kubetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// A cluster has 16 ports, the first of which is a multiple of 16: the addresses of its real nodes follow from it.
const (
	firstPort = 10000
	lastPort  = 17984 // higher ports are for other tests
	portsEach = 16
)

// takePorts returns the first port for the cluster in the folder, and the lock on its ports: no other test on this
// host has them until the lock is closed.
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

// take locks the file at the path; nil: another test holds it.
func take(path string) *os.File {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil // it belongs to another user
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil
	}
	return lock
}

// sweep stops the clusters of killed tests: their locks name their folders, and nobody holds them.
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
