package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Host is this computer, on which machines run.
type Host struct {
	o        Options
	prefix   string   // of the names of namespaces
	mock     string   // path of ec2-metadata-mock
	lock     *os.File // lock on the net
	machines sync.WaitGroup
}

// digest returns the SHA-256 of a text in hexadecimal.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Open prepares for machines on this host, or returns why there can be none: it locks the net for this cloud, removes
// what a killed cloud left, and makes this host reachable at Optionh.o.Host.
func Open(o Options) (*Host, error) {
	h := &Host{o: o, prefix: "aws" + digest(o.Net.String())[:4] + "-"}
	if err := h.begin(); err != nil {
		return nil, err
	}
	return h, nil
}

// begin prepares this host.
func (h *Host) begin() error {
	if os.Geteuid() != 0 {
		return errors.New("instances are processes only where root starts the cloud: they need network namespaces")
	}
	for _, name := range []string{"ip", "unshare", "mount", "hostname"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not installed (apt-get install iproute2 util-linux hostname)", name)
		}
	}
	var err error
	if h.mock = os.Getenv("SCRIMP_EC2_METADATA_MOCK"); h.mock == "" {
		if h.mock, err = exec.LookPath("ec2-metadata-mock"); err != nil {
			return errors.New("ec2-metadata-mock is missing: build github.com/aws/amazon-ec2-metadata-mock/cmd and name it in " +
				"SCRIMP_EC2_METADATA_MOCK")
		}
	}
	if err := os.MkdirAll(h.o.Dir, 0o750); err != nil {
		return err
	}
	name := filepath.Join(os.TempDir(), "scrimp-"+h.prefix+"net.lock")
	if h.lock, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("net %s is another cloud's: name another", h.o.Net), h.lock.Close())
	}
	h.endSpaces()
	_ = ip("addr del " + h.o.Host + "/32 dev lo") // left by a killed cloud
	if err := ip("addr add " + h.o.Host + "/32 dev lo"); err != nil {
		return errors.Join(err, h.lock.Close())
	}
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600) // needed between instances
	return nil
}

func (h *Host) endSpaces() {
	out, _ := exec.Command("ip", "netns", "list").Output()
	for _, line := range strings.Split(string(out), "\n") {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, h.prefix) {
			endSpace(name)
		}
	}
}

// Close waits for machines that were stopped, and removes what they left.
func (h *Host) Close() {
	h.machines.Wait()
	h.endSpaces()
	_ = ip("addr del " + h.o.Host + "/32 dev lo")
	_ = h.lock.Close()
}
