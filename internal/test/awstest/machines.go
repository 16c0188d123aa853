package awstest

import (
	"strings"
	"time"

	"scrimp/internal/test/awstest/machine"
)

// openHost prepares for instances that are processes.
func (s *Server) openHost() (err error) {
	s.machines, err = machine.Open(machine.Options{Dir: s.o.Run.Dir, Net: s.net, Host: s.Host, Boot: s.o.Spans.Boot,
		Kill: s.Kill, Shutdown: s.Shutdown, Sign: s.Sign})
	if err != nil {
		return err
	}
	s.ticks.Go(func() {
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

// closeHost ends all machines.
func (s *Server) closeHost() {
	if s.machines == nil {
		return
	}
	s.mu.Lock()
	for _, i := range s.instances {
		s.powerOff(i, false)
	}
	s.mu.Unlock()
	s.ticks.Wait()
	s.machines.Close()
}

// boot starts the machine of an instance that runs now.
func (s *Server) boot(i *instance) {
	if s.machines != nil {
		i.machine = s.machines.Boot(machine.Guest{ID: i.id, Address: i.address, UserData: i.spec.userData,
			Metadata: func(signature string) any { return s.metadata(i, signature) }})
	}
}

// warn makes the metadata service announce what is due.
func (s *Server) warn(i *instance) {
	level := 1
	if !i.notice.IsZero() && !i.notice.After(s.now()) {
		level = 2
	}
	if i.machine != nil {
		i.machine.Warn(level, i.end)
	}
}

// powerOff ends the processes of an instance. With soft they get SIGTERM first.
func (s *Server) powerOff(i *instance, soft bool) {
	if i.machine != nil {
		i.machine.Stop(soft)
	}
}

func (s *Server) metadata(i *instance, signature string) object {
	life := "on-demand"
	if i.request != nil {
		life = "spot"
	}
	return object{"metadata": object{"values": object{"ami-id": i.image.ID, "ami-launch-index": itoa(i.index),
		"instance-id":         i.id,
		"instance-life-cycle": life, "instance-type": i.typ.Name, "local-ipv4": i.address.String(),
		"mac-local-ipv4s":             i.address.String(),
		"placement-availability-zone": i.zone.Name, "placement-availability-zone-id": i.zone.ID, "placement-region": i.region,
		"placement-group-name": i.spec.group, "public-ipv4": i.public, "reservation-id": i.reservation,
		"hostname": "ip-" + strings.ReplaceAll(i.address.String(), ".", "-") + ".ec2.internal"}},
		"dynamic": object{"values": object{"instance-identity-signature": signature,
			"instance-identity-document": object{"accountId": s.o.Account,
				"imageId":          i.image.ID,
				"availabilityZone": i.zone.Name, "version": "2017-09-30", "privateIp": i.address.String(), "instanceId": i.id,
				"pendingTime": i.launched.Format(time.RFC3339), "architecture": i.typ.Arch, "instanceType": i.typ.Name,
				"region": i.region}}}, "userdata": object{"values": object{"userdata": i.spec.userData}}}
}
