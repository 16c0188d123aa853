package awstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// prefix returns the prefix of this cloud's network namespaces, which depends on its net.
func (s *Server) prefix() string { return "aws" + hash([]byte(s.net.String()))[:4] + "-" }

// beginMachines prepares for instances that are processes, or returns why they cannot be: it locks the net for this
// cloud, removes what a killed cloud left, and makes this host reachable at Host.
func (s *Server) beginMachines() error {
	if os.Geteuid() != 0 {
		return errors.New("instances are processes only where root starts the cloud: they need network namespaces")
	}
	for _, name := range []string{"ip", "unshare", "mount", "hostname"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not installed (apt-get install iproute2 util-linux hostname)", name)
		}
	}
	var err error
	if s.mock = os.Getenv("SCRIMP_EC2_METADATA_MOCK"); s.mock == "" {
		if s.mock, err = exec.LookPath("ec2-metadata-mock"); err != nil {
			return errors.New("ec2-metadata-mock is missing: build github.com/aws/amazon-ec2-metadata-mock/cmd and name it in " +
				"SCRIMP_EC2_METADATA_MOCK")
		}
	}
	if err := os.MkdirAll(s.o.Run.Dir, 0o750); err != nil {
		return err
	}
	name := filepath.Join(os.TempDir(), "scrimp-"+s.prefix()+"net.lock")
	if s.lock, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("net %s is another cloud's: name another", s.net), s.lock.Close())
	}
	s.endSpaces()
	_ = ip("addr del " + s.Host + "/32 dev lo") // left by a killed cloud
	if err := ip("addr add " + s.Host + "/32 dev lo"); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600) // needed between instances
	s.machines.Go(func() {
		for {
			select {
			case <-time.After(50 * time.Millisecond):
				s.mu.Lock()
				s.advance(s.now())
				s.mu.Unlock()
			case <-s.stop:
				return
			}
		}
	})
	return nil
}

func (s *Server) endSpaces() {
	out, _ := exec.Command("ip", "netns", "list").Output()
	for _, line := range strings.Split(string(out), "\n") {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, s.prefix()) {
			endSpace(name)
		}
	}
}

// endMachines kills every instance's processes, and returns when none is left.
func (s *Server) endMachines() {
	if s.lock == nil {
		return
	}
	s.mu.Lock()
	for _, i := range s.instances {
		s.powerOff(i, false)
	}
	s.mu.Unlock()
	s.machines.Wait()
	s.endSpaces()
	_ = ip("addr del " + s.Host + "/32 dev lo")
	_ = s.lock.Close()
}
